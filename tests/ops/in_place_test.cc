// What operators say that their output may lie in: run so, each gives the bits that it gives
// apart.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "ops/elementwise/elementwise.h"
#include "ops/random/kernels.h"
#include "ops/random/random.h"
#include "ops/register.h"
#include "tests/support/run_kernel.h"

namespace tidemark::testing {
namespace {

// Enough for several threads, vectors and their rests.
const Shape kShape{3, 40'001};

struct Operands {
  std::vector<DType> dtypes;
  Attrs attrs{};
  Scalars scalars{};
};

// Of those that take other things than one or two tensors of float32.
Operands operands_of(const OpDef& op) {
  constexpr DType kFloat = DType::kFloat32, kBool = DType::kBool;
  static const std::map<std::string, std::vector<DType>> others{
      {"where", {kBool, kFloat, kFloat}},
      {"where_grad", {kBool, kFloat}},
      {"where_other_grad", {kBool, kFloat}},
      {"div_grad", {kFloat, kFloat, kFloat}}};
  const auto found = others.find(op.name);
  const auto takes = [&](size_t count) {
    const std::vector<TensorMeta> metas(count, TensorMeta::contiguous(kFloat, kShape));
    try {
      op.infer({metas, {}, Attrs()});
      return true;
    } catch (const UsageError&) {
      return false;
    }
  };
  if (&op == &kDropout) return {{kFloat}, random::DropoutAttrs{0.3, 7}, {4}};
  if (&op == &kGelu || &op == &kGeluGrad) {
    return {std::vector<DType>(&op == &kGelu ? 1 : 2, kFloat), GeluAttrs{1}};
  }
  if (found != others.end()) return {found->second};
  return {std::vector<DType>(takes(1) ? 1 : 2, kFloat), {}, {0.37}};
}

// Positive, as some take logarithms; of bool, the bytes of as many.
Array values_of(DType dtype, uint32_t seed) {
  Array array = Array::random(kShape, seed, 0.1F, 2);
  if (dtype == DType::kFloat32) return array;
  std::vector<uint8_t> bytes;
  for (const float value : array.values) bytes.push_back(value > 1 ? 1 : 0);
  std::memcpy(array.values.data(), bytes.data(), bytes.size());
  return array;
}

TEST(InPlace, GivesTheSameBits) {
  size_t tried = 0;
  for (const OpDef* op : all_operators()) {
    if (op->may_overwrite == 0) continue;
    SCOPED_TRACE(op->name);
    const Operands operands = operands_of(*op);
    std::vector<Array> inputs;
    for (const DType dtype : operands.dtypes) {
      inputs.push_back(values_of(dtype, static_cast<uint32_t>(inputs.size() + 1)));
    }
    KernelOptions options{.dtypes = operands.dtypes, .scalars = operands.scalars};
    const KernelRun apart = run_kernel_with(options, *op, inputs, operands.attrs);
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!op->overwrites(i)) continue;
      ++tried;
      options.place = i;
      EXPECT_TRUE(same_bits(run_kernel_with(options, *op, inputs, operands.attrs)[0], apart[0]))
          << "input " << i;
    }
  }
  EXPECT_GT(tried, 40u);
}

}  // namespace
}  // namespace tidemark::testing
