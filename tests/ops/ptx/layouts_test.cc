// Operators that compute each element by itself, on every type that they take and on operands
// of every layout, so that each way of walking through memory is executed: CUDA's kernel
// against the CPU's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "ops/autograd/accumulate.h"
#include "ops/elementwise/elementwise.h"
#include "ops/optimizer/optimizer.h"
#include "ops/registry/kernels.h"
#include "ops/view/contiguous.h"
#include "runtime/core/bfloat16.h"
#include "runtime/core/errors.h"

namespace tidemark::testing {
namespace {

const std::vector<DType> kTypes{DType::kFloat32, DType::kBFloat16, DType::kInt64,
                                DType::kInt32,   DType::kUInt8,    DType::kBool};
const Shape kShape{6, 8};

struct Layout {
  const char* name;
  Shape strides;
  int64_t offset;
};
const Layout kLayouts[] = {{"gapless", {8, 1}, 0},
                           {"rows with gaps", {16, 1}, 0},
                           {"transposed", {1, 6}, 0},
                           {"one element on", {8, 1}, 1}};

struct CastTo {  // as CastAttrs of compare.cc
  int64_t dtype;
};

// An operator, with attributes and scalars that choose among its kernels.
struct Call {
  const OpDef* op;
  Attrs attrs{};
  Scalars scalars{0.37};
};

std::vector<Call> calls() {
  std::vector<Call> calls;
  for (const OpDef* op :
       {&kAbs,       &kAbsGrad,       &kAccumulate,  &kAdd,         &kAddInPlace,
        &kAddScaled, &kCopy,          &kCopyInPlace, &kDiv,         &kDivGrad,
        &kEq,        &kExp,           &kFillInPlace, &kGt,          &kLog,
        &kMul,       &kMulInPlace,    &kNeg,         &kRelu,        &kReluGradByValues,
        &kRelu6,     &kRelu6Grad,     &kScale,       &kSigmoid,     &kSigmoidGrad,
        &kSilu,      &kSiluGrad,      &kSiluMul,     &kSiluMulGrad, &kSqrt,
        &kSqrtGrad,  &kSub,           &kTanh,        &kTanhGrad,    &kWhere,
        &kWhereGrad, &kWhereOtherGrad}) {
    calls.push_back({op});
  }
  for (const int64_t tanh : {0, 1}) {
    calls.push_back({&kGelu, GeluAttrs{tanh}});
    calls.push_back({&kGeluGrad, GeluAttrs{tanh}});
  }
  for (const DType to : kTypes) calls.push_back({&kCast, CastTo{static_cast<int64_t>(to)}});
  for (const double decay : {0.0, 0.1}) {
    calls.push_back({&kSgdStep, {}, {0.1, 0, 0, decay}});
    for (const double nesterov : {0, 1}) {
      for (const double first : {0, 1}) {
        calls.push_back({&kSgdMomentumStep, {}, {0.1, 0.9, 0, decay, nesterov, first}});
      }
    }
    for (const double decoupled : {0, 1}) {
      calls.push_back({&kAdamStep, {}, {0.1, 0.9, 0.99, 1e-8, decay, 1, decoupled}});
    }
  }
  return calls;
}

// The types of inputs to try with: one to four of one type, a condition before one or two.
std::vector<std::vector<DType>> inputs_of(DType type) {
  return {{type},
          {type, type},
          {type, type, type},
          {type, type, type, type},
          {DType::kBool, type},
          {DType::kBool, type, type}};
}

// A tensor's storage, with room for every layout.
using Block = std::vector<uint64_t>;
constexpr size_t kWords = 128;

double read(const Block& block, DType type, int64_t at) {
  const auto* bytes = reinterpret_cast<const std::byte*>(block.data());
  const auto as = [&]<class T>(T value) {
    std::memcpy(&value, bytes + at * static_cast<int64_t>(sizeof(T)), sizeof(T));
    return static_cast<double>(value);  // BFloat16 by way of float
  };
  switch (type) {
    case DType::kFloat32: return as(float());
    case DType::kBFloat16: return as(BFloat16());
    case DType::kInt64: return as(int64_t());
    case DType::kInt32: return as(int32_t());
    default: return as(uint8_t());
  }
}

// Positive, as some operators take logarithms; 0 or 1 where the type has nothing between.
Block values_of(DType type, uint32_t seed) {
  Block block(kWords);
  auto* bytes = reinterpret_cast<std::byte*>(block.data());
  const int64_t size = size_of(type).count();
  for (int64_t i = 0; i < static_cast<int64_t>(kWords) * 8 / size; ++i) {
    const int64_t number = (i * 7 + int64_t{3} * seed) % 11;
    const float value = 0.25F + 0.125F * static_cast<float>(number);
    const BFloat16 narrow(value);
    const int64_t whole = type == DType::kBool ? number % 2 : number % 4;
    const void* from = &whole;
    if (type == DType::kFloat32) from = &value;
    if (type == DType::kBFloat16) from = &narrow;
    std::memcpy(bytes + i * size, from, static_cast<size_t>(size));
  }
  return block;
}

struct Run {
  std::vector<TensorMeta> metas;
  std::vector<Block> blocks;  // inputs, then outputs
};

Run run(const Call& call, PrepareKernel prepare, const std::vector<TensorMeta>& inputs) {
  Run result;
  const OpQuery before{inputs, {}, call.attrs};
  const std::vector<TensorMeta> outputs = call.op->infer(before);
  const PreparedKernel kernel = prepare({inputs, outputs, call.attrs});
  std::vector<std::byte*> in, out;
  for (const auto* metas : {&inputs, &outputs}) {
    for (const TensorMeta& meta : *metas) {
      result.metas.push_back(meta);
      result.blocks.push_back(
          values_of(meta.dtype, static_cast<uint32_t>(result.blocks.size())));
      auto& to = metas == &inputs ? in : out;
      to.push_back(reinterpret_cast<std::byte*>(result.blocks.back().data()) +
                   meta.offset * size_of(meta.dtype).count());
    }
  }
  Block workspace(static_cast<size_t>(kernel.workspace.count()) / 8 + 1);
  kernel.run({inputs, outputs, in, out, reinterpret_cast<std::byte*>(workspace.data()),
              call.attrs, call.scalars, nullptr});
  return result;
}

void expect_same(const Run& actual, const Run& expected) {
  for (size_t i = 0; i < expected.blocks.size(); ++i) {
    const DType type = expected.metas[i].dtype;
    const double tolerance = type == DType::kBFloat16 ? 0x1p-7 : 1e-5;
    for (int64_t e = 0; e < static_cast<int64_t>(kWords) * 8 / size_of(type).count(); ++e) {
      const double value = read(expected.blocks[i], type, e);
      ASSERT_NEAR(read(actual.blocks[i], type, e), value, tolerance * (1 + std::abs(value)))
          << "block " << i << ", element " << e;
    }
  }
}

// False if the operator does not take such inputs.
bool try_inputs(const Call& call, const std::vector<DType>& types, const Layout& layout) {
  std::vector<TensorMeta> inputs;
  for (const DType type : types) {
    // An optimizer takes gaps in the gradient alone.
    const bool gapless = call.op->input_group > 0 && inputs.size() != 1;
    const Shape& strides = gapless ? kLayouts[0].strides : layout.strides;
    inputs.push_back({type, kShape, strides, layout.offset});
  }
  const PrepareKernel cpu = call.op->prepare[static_cast<size_t>(Backend::kCpu)];
  Run expected;
  try {
    expected = run(call, cpu, inputs);
  } catch (const UsageError&) {
    return false;
  }
  expect_same(run(call, find_kernel(*call.op, Backend::kCpu), inputs), expected);
  return true;
}

class LayoutsTest : public ::testing::TestWithParam<Layout> {};

TEST_P(LayoutsTest, AllGiveWhatTheCpuGives) {
  for (const Call& call : calls()) {
    size_t taken = 0;
    for (const DType type : kTypes) {
      for (const std::vector<DType>& types : inputs_of(type)) {
        SCOPED_TRACE(std::string(call.op->name) + " of " + std::to_string(types.size()) + " " +
                     std::string(to_string(types.back())));
        if (try_inputs(call, types, GetParam())) ++taken;
        if (HasFatalFailure()) return;
      }
    }
    const bool with_gaps = GetParam().strides != kLayouts[0].strides;
    const bool takes_gaps = call.op != &kRelu && call.op != &kGelu && call.op != &kGeluGrad &&
                            call.op != &kSiluMul && call.op != &kSiluMulGrad;
    EXPECT_EQ(taken > 0, takes_gaps || !with_gaps) << call.op->name;
  }
}

INSTANTIATE_TEST_SUITE_P(Every, LayoutsTest, ::testing::ValuesIn(kLayouts),
                         [](const auto& layout) { return std::to_string(layout.index); });

}  // namespace
}  // namespace tidemark::testing
