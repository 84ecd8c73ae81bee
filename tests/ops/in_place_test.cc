// What operators say that their output may lie in: run so, each gives the bits that it gives
// apart.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ops/elementwise/elementwise.h"
#include "ops/random/kernels.h"
#include "ops/random/random.h"
#include "ops/register.h"
#include "runtime/core/bfloat16.h"
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

// `number`: float32 or bfloat16. None of an operator that does not take it.
std::optional<Operands> operands_of(const OpDef& op, DType number) {
  constexpr DType kBool = DType::kBool;
  const auto taken = [&](Operands operands) -> std::optional<Operands> {
    std::vector<TensorMeta> metas;
    for (const DType dtype : operands.dtypes) {
      metas.push_back(TensorMeta::contiguous(dtype, kShape));
    }
    try {
      op.infer({metas, {}, operands.attrs});
    } catch (const UsageError&) {
      return std::nullopt;
    }
    return operands;
  };
  // Those that take other things than one or two tensors of numbers.
  const std::map<std::string, std::vector<DType>> others{
      {"where", {kBool, number, number}},
      {"where_grad", {kBool, number}},
      {"where_other_grad", {kBool, number}},
      {"div_grad", {number, number, number}}};
  const auto found = others.find(op.name);
  if (found != others.end()) return taken({found->second});
  if (&op == &kDropout) return taken({{number}, random::DropoutAttrs{0.3, 7}, {4}});
  if (&op == &kGelu) return taken({{number}, GeluAttrs{1}});
  if (&op == &kGeluGrad) return taken({{number, number}, GeluAttrs{1}});
  const auto one = taken({{number}, {}, {0.37}});
  return one ? one : taken({{number, number}, {}, {0.37}});
}

// Positive, as some take logarithms; of another type than float32, the bytes of as many.
Array values_of(DType dtype, uint32_t seed) {
  Array array = Array::random(kShape, seed, 0.1F, 2);
  if (dtype == DType::kFloat32) return array;
  if (dtype == DType::kBFloat16) {
    const std::vector<BFloat16> narrow(array.values.begin(), array.values.end());
    std::memcpy(array.values.data(), narrow.data(), narrow.size() * sizeof(BFloat16));
    return array;
  }
  std::vector<uint8_t> bytes;
  for (const float value : array.values) bytes.push_back(value > 1 ? 1 : 0);
  std::memcpy(array.values.data(), bytes.data(), bytes.size());
  return array;
}

// The inputs that were tried.
size_t try_all(DType number) {
  size_t tried = 0;
  for (const OpDef* op : all_operators()) {
    if (op->may_overwrite == 0) continue;
    SCOPED_TRACE(op->name);
    const std::optional<Operands> operands = operands_of(*op, number);
    EXPECT_TRUE(operands || number != DType::kFloat32);
    if (!operands) continue;
    std::vector<Array> inputs;
    for (const DType dtype : operands->dtypes) {
      inputs.push_back(values_of(dtype, static_cast<uint32_t>(inputs.size() + 1)));
    }
    KernelOptions options{.dtypes = operands->dtypes, .scalars = operands->scalars};
    const KernelRun apart = run_kernel_with(options, *op, inputs, operands->attrs);
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!op->overwrites(i)) continue;
      ++tried;
      // Else a place of one is none of the other's.
      EXPECT_EQ(operands->dtypes[i], apart.metas[0].dtype);
      options.place = i;
      EXPECT_TRUE(
          same_bits(run_kernel_with(options, *op, inputs, operands->attrs)[0], apart[0]))
          << "input " << i;
    }
  }
  return tried;
}

TEST(InPlace, GivesTheSameBits) { EXPECT_GT(try_all(DType::kFloat32), 40u); }

TEST(InPlace, GivesTheSameBitsInBfloat16) { EXPECT_GT(try_all(DType::kBFloat16), 20u); }

// Its output has another type.
TEST(InPlace, CastsAreApart) { EXPECT_EQ(kCast.may_overwrite, 0u); }

}  // namespace
}  // namespace tidemark::testing
