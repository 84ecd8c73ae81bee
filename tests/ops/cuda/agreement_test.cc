// Kernels on the GPU against those on the CPU, at shapes like a network's; and against
// themselves.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/attention/kernels.h"
#include "ops/attention/rotary.h"
#include "ops/conv/conv.h"
#include "ops/elementwise/gelu.h"
#include "ops/elementwise/relu.h"
#include "ops/elementwise/silu_mul.h"
#include "ops/linear/matmul.h"
#include "ops/norm/batch_norm.h"
#include "ops/norm/layer_norm.h"
#include "ops/norm/rms_norm.h"
#include "ops/optimizer/optimizer.h"
#include "ops/pool/avg_pool2d.h"
#include "ops/pool/max_pool2d.h"
#include "ops/reduce/reduce.h"
#include "tests/support/run_kernel.h"

namespace tidemark {
namespace {

using testing::Array;
using testing::KernelOptions;
using testing::KernelRun;
using testing::run_kernel_with;
using testing::same_bits;

// ||a - b|| / ||b||
double distance(const Array& a, const Array& b) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < b.values.size(); ++i) {
    difference += std::pow(double{a[i]} - b[i], 2);
    norm += std::pow(double{b[i]}, 2);
  }
  return std::sqrt(difference / norm);
}

struct Case {
  const char* what;
  const OpDef& op;
  std::vector<Array> inputs;
  Attrs attrs;
  bool products;  // of matrices: TF32 makes a difference
  double tolerance = 1e-5;
};

std::vector<Case> cases() {
  const auto random = [](const Shape& shape) {
    static uint32_t seed = 0;
    return Array::random(shape, ++seed);
  };
  const auto heads = [&] { return random({4, 200, 12, 64}); };
  const Conv2dAttrs same{.padding = {1, 1}}, strided{.stride = {2, 2}, .padding = {1, 1}};
  const Conv2dAttrs first{.stride = {2, 2}, .padding = {3, 3}};
  const Pool2dAttrs pool{{3, 3}, {2, 2}, {1, 1}};
  return {
      {"3x3", kConv2d, {random({8, 28, 28, 64}), random({64, 3, 3, 64})}, same, true},
      {"3x3 with bias",
       kConv2d,
       {random({4, 14, 14, 32}), random({48, 3, 3, 32}), random({48})},
       strided,
       true},
      {"7x7 of images", kConv2d, {random({4, 64, 64, 3}), random({64, 7, 7, 3})}, first, true},
      {"1x1",
       kConv2d,
       {random({8, 14, 14, 256}), random({64, 1, 1, 256})},
       Conv2dAttrs{},
       true},
      {"gradient of x",
       kConv2dGradInput,
       {random({8, 14, 14, 64}), random({64, 3, 3, 32})},
       Conv2dGradInputAttrs{strided, 28, 28},
       true},
      {"gradient of w",
       kConv2dGradWeight,
       {random({8, 28, 28, 32}), random({8, 14, 14, 64})},
       Conv2dGradWeightAttrs{strided, 3, 3, 1},
       true},
      {"gradient of w, in slices",
       kConv2dGradWeight,
       {random({128, 224, 224, 3}), random({128, 112, 112, 64})},
       Conv2dGradWeightAttrs{first, 7, 7, 0},
       true,
       7e-5},  // sums of 1.6 million products: 2^-24 times the square root of that
      {"product",
       kMatmul,
       {random({256, 512}), random({384, 512}), random({384})},
       MatmulAttrs{0, 1},
       true},
      {"batched product",
       kMatmul,
       {random({8, 12, 128, 64}), random({8, 12, 128, 64})},
       MatmulAttrs{0, 1},
       true},
      {"attention, materialised",
       kAttention,
       {heads(), heads(), heads()},
       attention::AttentionAttrs{0, 1, 0.1, 0.125, 1},
       true},
      {"attention, memory-efficient",
       kAttention,
       {heads(), heads(), heads()},
       attention::AttentionAttrs{1, 1, 0.1, 0.125, 1},
       true},
      {"gradient of attention, materialised",
       kAttentionGrad,
       {heads(), heads(), heads(), heads(), heads(), random({4, 12, 200, 200})},
       attention::AttentionAttrs{0, 0, 0.1, 0.125, 1},
       true},
      {"gradient of attention, memory-efficient",
       kAttentionGrad,
       {heads(), heads(), heads(), heads(), heads(), random({4, 12, 200})},
       attention::AttentionAttrs{1, 1, 0.1, 0.125, 1},
       true},
      {"deep product",
       kMatmul,
       {random({4096, 64}), random({4096, 32})},
       MatmulAttrs{1, 0},
       true},
      {"batch moments", kBatchMoments, {random({16, 28, 28, 64})}, {}, false},
      {"batch norm",
       kBatchNorm,
       {random({16, 28, 28, 64}), random({64}), random({64}), random({64}),
        Array::random({64}, 9, 0.5, 2)},
       BatchNormAttrs{1e-5, 1},
       false},
      {"layer norm",
       kLayerNorm,
       {random({1024, 768}), random({768}), random({768})},
       LayerNormAttrs{},
       false},
      {"gradient of layer norm",
       kLayerNormGrad,
       {random({1024, 768}), random({1024, 768}), random({768}), random({1024}),
        random({1024})},
       LayerNormAttrs{},
       false},
      {"rms norm", kRmsNorm, {random({1024, 2048}), random({2048})}, RmsNormAttrs{}, false},
      {"gradient of rms norm",
       kRmsNormGrad,
       {random({1024, 2048}), random({1024, 2048}), random({2048}), random({1024})},
       RmsNormGradAttrs{},
       false},
      {"rotary",
       kRotary,
       {random({4, 256, 32, 64}), random({256, 32}), random({256, 32})},
       RotaryAttrs{},
       false},
      {"silu of gate times up",
       kSiluMul,
       {random({1024, 5632}), random({1024, 5632})},
       {},
       false},
      {"gradient of silu of gate times up",
       kSiluMulGrad,
       {random({1024, 5632}), random({1024, 5632}), random({1024, 5632})},
       {},
       false},
      {"relu and its signs", kRelu, {random({1024, 3072})}, {}, false},
      {"gelu", kGelu, {random({1024, 3072})}, GeluAttrs{0}, false},
      {"gradient of gelu",
       kGeluGrad,
       {random({1024, 3072}), random({1024, 3072})},
       GeluAttrs{1},
       false},
      {"norm", kNorm, {random({30522, 64})}, {}, false},
      {"norm of several", kNorm, {random({768}), random({3072}), random({200, 99})}, {}, false},
      {"max pooling", kMaxPool2d, {random({4, 56, 56, 64})}, pool, false},
      {"global mean",
       kAvgPool2d,
       {random({16, 7, 7, 512})},
       AvgPool2dAttrs{{}, 1, 1, 1, 1},
       false},
  };
}

TEST(AgreementTest, WithTheCpuAndWithItself) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.what);
    const KernelRun cpu = run_kernel_with({.device = "cpu"}, c.op, c.inputs, c.attrs);
    for (const bool tf32 : {false, true}) {
      SCOPED_TRACE(tf32 ? "tf32" : "float32");
      KernelOptions options;
      options.tf32 = tf32;
      const KernelRun gpu = run_kernel_with(options, c.op, c.inputs, c.attrs);
      const KernelRun again = run_kernel_with(options, c.op, c.inputs, c.attrs);
      EXPECT_EQ(gpu.workspace, again.workspace);
      const double tolerance = tf32 && c.products ? 2e-3 : c.tolerance;
      for (size_t i = 0; i < gpu.outputs.size(); ++i) {
        EXPECT_TRUE(same_bits(gpu[i], again[i])) << "output " << i;
        if (gpu.metas[i].dtype == DType::kFloat32) {
          EXPECT_LT(distance(gpu[i], cpu[i]), tolerance) << "output " << i;
        } else {
          EXPECT_TRUE(same_bits(gpu[i], cpu[i])) << "output " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tidemark
