// What operators say that their output may lie in: run so, each gives the bits that it gives
// apart.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ops/attention/rotary.h"
#include "ops/elementwise/elementwise.h"
#include "ops/loss/kernels.h"
#include "ops/loss/linear_cross_entropy.h"
#include "ops/loss/linear_cross_entropy_kernels.h"
#include "ops/loss/loss.h"
#include "ops/norm/batch_norm.h"
#include "ops/norm/layer_norm.h"
#include "ops/norm/rms_norm.h"
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
  std::vector<Shape> shapes{};  // none: kShape each
};

// Those that read more than one element of an input for each of the output.
std::optional<Operands> operands_of_rows(const OpDef& op, DType number) {
  constexpr DType kFloat = DType::kFloat32;
  const Shape x{48, 403};
  const Shape row{x[1]}, column{x[0]};
  if (&op == &kBatchNorm) {
    return Operands{{number, kFloat, kFloat, kFloat, kFloat, number},
                    BatchNormAttrs{.activation = 1},
                    {},
                    {x, row, row, row, row, x}};
  }
  if (&op == &kBatchNormGrad) {
    return Operands{{number, number, kFloat, kFloat, kFloat, kFloat},
                    BatchNormGradAttrs{.activation = 1},
                    {},
                    {x, x, row, row, row, row}};
  }
  if (&op == &kLayerNormGrad) {
    return Operands{{number, number, kFloat, kFloat, kFloat},
                    LayerNormAttrs{},
                    {},
                    {x, x, row, column, column}};
  }
  if (&op == &kRmsNormGrad) {
    return Operands{
        {number, number, kFloat, kFloat}, RmsNormGradAttrs{}, {}, {x, x, row, column}};
  }
  if (&op == &kReluGrad) {
    return Operands{{number, DType::kInt32}, {}, {}, {x, {(48 * 403 + 31) / 32}}};
  }
  if (&op == &kRotary) {
    return Operands{
        {number, kFloat, kFloat}, RotaryAttrs{}, {}, {{3, 50, 6, 68}, {50, 34}, {50, 34}}};
  }
  if (&op == &kCrossEntropyGrad) {
    return Operands{{kFloat, number, DType::kInt64, kFloat},
                    loss::CrossEntropyAttrs{},
                    {},
                    {{}, x, column, {x[0], 2}}};
  }
  if (&op == &kLinearCrossEntropyGrad) {
    return Operands{{kFloat, number},
                    loss::LinearCrossEntropyGradAttrs{number == DType::kBFloat16},
                    {},
                    {{}, x}};
  }
  return std::nullopt;
}

// `number`: float32 or bfloat16. None of an operator that does not take it.
std::optional<Operands> operands_of(const OpDef& op, DType number) {
  if (auto rows = operands_of_rows(op, number)) return rows;
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
      {"div_grad", {number, number, number}},
      {"silu_mul_grad", {number, number, number}}};
  const auto found = others.find(op.name);
  if (found != others.end()) return taken({found->second});
  if (&op == &kDropout) return taken({{number}, random::DropoutAttrs{0.3, 7}, {4}});
  if (&op == &kGelu) return taken({{number}, GeluAttrs{1}});
  if (&op == &kGeluGrad) return taken({{number, number}, GeluAttrs{1}});
  const auto one = taken({{number}, {}, {0.37}});
  return one ? one : taken({{number, number}, {}, {0.37}});
}

// Positive, as some take logarithms; of another type than float32, the bytes of as many.
Array values_of(DType dtype, const Shape& shape, uint32_t seed) {
  Array array = Array::random(shape, seed, 0.1F, 2);
  if (dtype == DType::kFloat32) return array;
  if (dtype == DType::kBFloat16) {
    const std::vector<BFloat16> narrow(array.values.begin(), array.values.end());
    std::memcpy(array.values.data(), narrow.data(), narrow.size() * sizeof(BFloat16));
    return array;
  }
  if (dtype == DType::kInt64) {
    std::vector<int64_t> labels;
    for (const float value : array.values) labels.push_back(static_cast<int64_t>(200 * value));
    array.values.resize(2 * labels.size());
    std::memcpy(array.values.data(), labels.data(), labels.size() * sizeof(int64_t));
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
      const Shape& shape = operands->shapes.empty() ? kShape : operands->shapes[inputs.size()];
      inputs.push_back(values_of(dtype, shape, static_cast<uint32_t>(inputs.size() + 1)));
    }
    KernelOptions options{.dtypes = operands->dtypes, .scalars = operands->scalars};
    const KernelRun apart = run_kernel_with(options, *op, inputs, operands->attrs);
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!op->overwrites(i)) continue;
      ++tried;
      // Else a place of one is none of the other's.
      EXPECT_EQ(operands->dtypes[i], apart.metas[0].dtype);
      options.place = i;
      const KernelRun over = run_kernel_with(options, *op, inputs, operands->attrs);
      for (size_t y = 0; y < apart.outputs.size(); ++y) {
        EXPECT_TRUE(same_bits(over[y], apart[y])) << "output " << y << " over input " << i;
      }
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
