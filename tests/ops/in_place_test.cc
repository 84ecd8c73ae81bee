// What operators say that their output may lie in: run so, each gives the bits that it gives
// apart.
#include <gtest/gtest.h>

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

// The output's bytes; `place`: the input that it lies in, if it does in one.
std::vector<std::byte> run(const OpDef& op, const Operands& operands, int place) {
  std::vector<TensorMeta> metas;
  std::vector<GuardedBlock> blocks;
  for (size_t i = 0; i < operands.dtypes.size(); ++i) {
    metas.push_back(TensorMeta::contiguous(operands.dtypes[i], kShape));
    blocks.emplace_back(metas.back().bytes());
    // Positive, as some take logarithms.
    const Array values = Array::random(kShape, static_cast<uint32_t>(i + 1), 0.1F, 2);
    for (size_t j = 0; j < values.values.size(); ++j) {
      if (operands.dtypes[i] == DType::kFloat32) {
        reinterpret_cast<float*>(blocks.back().data())[j] = values[j];
      } else {
        blocks.back().data()[j] = static_cast<std::byte>(values[j] > 1);
      }
    }
  }
  const std::vector<TensorMeta> outputs = op.infer({metas, {}, operands.attrs, 2});
  blocks.emplace_back(outputs[0].bytes());
  const PreparedKernel kernel =
      find_kernel(op, Backend::kCpu)({metas, outputs, operands.attrs, 2});
  const GuardedBlock workspace(kernel.workspace);
  std::vector<std::byte*> in;
  for (size_t i = 0; i < metas.size(); ++i) in.push_back(blocks[i].data());
  std::byte* to = place < 0 ? blocks.back().data() : in[static_cast<size_t>(place)];
  const std::vector<std::byte*> out{to};
  kernel.run(
      {metas, outputs, in, out, workspace.data(), operands.attrs, operands.scalars, nullptr});
  return {to, to + outputs[0].bytes().count()};
}

TEST(InPlace, GivesTheSameBits) {
  size_t tried = 0;
  for (const OpDef* op : all_operators()) {
    if (op->may_overwrite == 0) continue;
    SCOPED_TRACE(op->name);
    const Operands operands = operands_of(*op);
    const std::vector<std::byte> apart = run(*op, operands, -1);
    for (size_t i = 0; i < operands.dtypes.size(); ++i) {
      if (!op->overwrites(i)) continue;
      ++tried;
      EXPECT_TRUE(run(*op, operands, static_cast<int>(i)) == apart) << "input " << i;
    }
  }
  EXPECT_GT(tried, 40u);
}

}  // namespace
}  // namespace tidemark::testing
