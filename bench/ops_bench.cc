// Times operators, one kernel at a time: the layers of ResNet-50 at 224x224, of BERT-base and
// of a small Llama.
//
//   ops_bench [--benchmark_filter=conv2d/.*]
//
// The environment may set TIDEMARK_BENCH_DEVICE (cpu or cuda), TIDEMARK_BENCH_BATCH (images,
// and sequences of BERT) and TIDEMARK_BENCH_THREADS. Times are the device's own, from a
// kernel's start to its end, for several runs in a row over the same tensors. Each benchmark
// reports GFLOP/s, and the bytes of its inputs and outputs per second.
#include <benchmark/benchmark.h>
#include <omp.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "ops/attention/kernels.h"
#include "ops/attention/rotary.h"
#include "ops/conv/conv.h"
#include "ops/elementwise/gelu.h"
#include "ops/elementwise/relu.h"
#include "ops/elementwise/silu_mul.h"
#include "ops/elementwise/unary.h"
#include "ops/linear/matmul.h"
#include "ops/loss/kernels.h"
#include "ops/loss/linear_cross_entropy.h"
#include "ops/loss/linear_cross_entropy_kernels.h"
#include "ops/loss/loss.h"
#include "ops/norm/batch_norm.h"
#include "ops/norm/layer_norm.h"
#include "ops/norm/rms_norm.h"
#include "ops/pool/max_pool2d.h"
#include "ops/random/kernels.h"
#include "ops/random/random.h"
#include "ops/reduce/reduce.h"
#include "ops/register.h"
#include "ops/registry/kernels.h"
#include "runtime/device/device.h"

namespace tidemark {
namespace {

int from_environment(const char* name, int otherwise) {
  const char* value = std::getenv(name);
  return value ? std::atoi(value) : otherwise;
}

int threads() { return from_environment("TIDEMARK_BENCH_THREADS", omp_get_num_procs()); }

Device& device() {
  static const std::unique_ptr<Device> device = [] {
    const char* name = std::getenv("TIDEMARK_BENCH_DEVICE");
    return make_device(name ? name : "cpu", {.threads = threads()});
  }();
  return *device;
}

constexpr int64_t kDifferent = 1009 * 1000;  // distinct values, which then repeat

// Blocks of device memory, filled with numbers in (-0.25, 0.75), or with small integers.
class Blocks {
 public:
  std::byte* add(const TensorMeta& meta) {
    const Bytes bytes = std::max(meta.bytes(), kAlignment);
    regions_.push_back(device().map(MemoryKind::kDevice, bytes));
    std::vector<std::byte> values(static_cast<size_t>(bytes.count()));
    const int64_t size = size_of(meta.dtype).count();
    const int64_t different = std::min(meta.shape.elements(), kDifferent);
    for (int64_t i = 0; i < different; ++i) {
      const float value = static_cast<float>(i * 7919 % 1009) / 1009.0F - 0.25F;
      const BFloat16 rounded = value;
      const int64_t whole = i % 1000;
      const int32_t start = static_cast<int32_t>(i / 256 * 256);  // of sequences in a row
      std::byte* at = values.data() + i * size;
      if (meta.dtype == DType::kFloat32) std::memcpy(at, &value, sizeof(value));
      if (meta.dtype == DType::kBFloat16) std::memcpy(at, &rounded, sizeof(rounded));
      if (meta.dtype == DType::kInt64) std::memcpy(at, &whole, sizeof(whole));
      if (meta.dtype == DType::kInt32) std::memcpy(at, &start, sizeof(start));
    }
    for (size_t i = static_cast<size_t>(different * size); i < values.size(); ++i) {
      values[i] = values[i - static_cast<size_t>(different * size)];
    }
    device().copy(StreamId::kReload, {regions_.back()->data(), values.data(), bytes, 0});
    device().synchronize_all();
    return regions_.back()->data();
  }
  std::byte* add(Bytes bytes) {
    regions_.push_back(device().map(MemoryKind::kDevice, std::max(bytes, kAlignment)));
    return regions_.back()->data();
  }

 private:
  std::vector<std::unique_ptr<MemoryRegion>> regions_;
};

constexpr int kInARow = 5;

void run(benchmark::State& state, const OpDef& op, const std::vector<Shape>& shapes,
         const Attrs& attrs, const std::vector<DType>& dtypes, const std::string& algorithm) {
  std::vector<TensorMeta> in;
  for (size_t i = 0; i < shapes.size(); ++i) {
    in.push_back(
        TensorMeta::contiguous(i < dtypes.size() ? dtypes[i] : DType::kFloat32, shapes[i]));
  }
  const std::vector<TensorMeta> out = op.infer({in, {}, attrs, threads()});
  const OpQuery query{.inputs = in,
                      .outputs = out,
                      .attrs = attrs,
                      .threads = threads(),
                      .algorithm = algorithm};
  const PrepareKernel prepare = find_kernel(op, device().profile().backend);
  if (!prepare) return state.SkipWithError("no kernel on this device");
  const PreparedKernel kernel = prepare(query);
  Blocks blocks;
  std::vector<std::byte*> inputs, outputs;
  for (const TensorMeta& meta : in) inputs.push_back(blocks.add(meta));
  for (const TensorMeta& meta : out) outputs.push_back(blocks.add(meta.bytes()));
  std::byte* const workspace = blocks.add(kernel.workspace);
  const Scalars scalars{};
  const auto enqueue = [&](uint64_t tag) {
    const auto work = [&](void* stream) {
      kernel.run({in, out, inputs, outputs, workspace, attrs, scalars, stream});
    };
    device().enqueue(StreamId::kCompute, {work, Nanos(0), tag});
  };
  const auto seconds = [&](int count) {
    for (int i = 0; i < count; ++i) enqueue(static_cast<uint64_t>(i) + 1);
    device().synchronize_all();
    const std::vector<Completion> done = device().take_completions();
    return to_seconds(done.back().end - done.front().start) / count;
  };
  seconds(1);  // the first run generates and loads code
  for (auto _ : state) state.SetIterationTime(seconds(kInARow));
  const OpCost cost = op.cost(query);
  state.counters["GFLOP/s"] =
      benchmark::Counter(cost.flops * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["GB/s"] =
      benchmark::Counter(static_cast<double>(cost.bytes_moved.count()) * 1e-9,
                         benchmark::Counter::kIsIterationInvariantRate);
  state.counters["workspace_MiB"] = to_mib(kernel.workspace);
}

// An empty `algorithm`: the default.
void add(const std::string& name, const OpDef& op, const std::vector<Shape>& shapes,
         const Attrs& attrs, const std::vector<DType>& dtypes = {},
         const std::string& algorithm = {}) {
  benchmark::RegisterBenchmark(
      name.c_str(),
      [=, &op](benchmark::State& state) { run(state, op, shapes, attrs, dtypes, algorithm); })
      ->Unit(benchmark::kMillisecond)
      ->UseManualTime();
}

void add_convolution(int64_t n, int64_t extent, int64_t channels, int64_t filters,
                     int64_t window, int64_t stride) {
  const Conv2dAttrs conv{.stride = {stride, stride}, .padding = {window / 2, window / 2}};
  const int64_t out = (extent + 2 * (window / 2) - window) / stride + 1;
  const Shape x{n, extent, extent, channels}, w{filters, window, window, channels},
      y{n, out, out, filters};
  const std::string layer = std::to_string(extent) + "x" + std::to_string(extent) + "x" +
                            std::to_string(channels) + "-" + std::to_string(filters) + "/" +
                            std::to_string(window) + "x" + std::to_string(window) + "s" +
                            std::to_string(stride);
  add("conv2d/" + layer, kConv2d, {x, w}, conv);
  add("conv2d_grad_input/" + layer, kConv2dGradInput, {y, w},
      Conv2dGradInputAttrs{conv, extent, extent});
  add("conv2d_grad_weight/" + layer, kConv2dGradWeight, {x, y},
      Conv2dGradWeightAttrs{conv, window, window, 0});
}

// The default and every other algorithm that --allow-rounding may choose. MONeT's figure 7 is
// of a 3x3 convolution of 256 x 56 x 56 x 64.
void add_algorithms(int64_t n, int64_t extent, int64_t channels) {
  const Conv2dAttrs conv{.padding = {1, 1}};
  const Shape x{n, extent, extent, channels}, w{channels, 3, 3, channels};
  const auto add_each = [&](const OpDef& op, const std::vector<Shape>& shapes,
                            const Attrs& attrs) {
    std::vector<TensorMeta> in;
    for (const Shape& shape : shapes)
      in.push_back(TensorMeta::contiguous(DType::kFloat32, shape));
    const std::vector<TensorMeta> out = op.infer({in, {}, attrs, threads()});
    const OpQuery query{in, out, attrs, threads()};
    const auto backend = static_cast<size_t>(device().profile().backend);
    std::vector<std::string> names{""};
    if (op.algorithms[backend]) {
      for (std::string& name : op.algorithms[backend](query)) {
        if (!name.starts_with("ref")) names.push_back(std::move(name));  // takes seconds
      }
    }
    for (const std::string& name : names) {
      add(std::string("algorithm/") + op.name + "/" + (name.empty() ? "default" : name), op,
          shapes, attrs, {}, name);
    }
  };
  add_each(kConv2d, {x, w}, conv);
  add_each(kConv2dGradInput, {x, w}, Conv2dGradInputAttrs{conv, extent, extent});
  add_each(kConv2dGradWeight, {x, x}, Conv2dGradWeightAttrs{conv, 3, 3, 0});
}

// Would a weight's gradient that normalises its input tile by tile pay? For the convolutions of
// ResNet-50 that read a batch norm's output, at batch 16: the gradient of the whole batch, of
// parts of it, whose sum another kernel would have to be, and the normalisation.
void add_weight_gradients() {
  struct Layer {
    int64_t extent, channels, filters, kernel, stride;
  };
  constexpr Layer kLayers[] = {
      {56, 64, 64, 3, 1},   {56, 64, 256, 1, 1},   {56, 256, 64, 1, 1},   {56, 256, 128, 1, 1},
      {56, 128, 128, 3, 2}, {28, 128, 512, 1, 1},  {28, 512, 128, 1, 1},  {28, 128, 128, 3, 1},
      {28, 512, 256, 1, 1}, {28, 256, 256, 3, 2},  {14, 256, 1024, 1, 1}, {14, 1024, 256, 1, 1},
      {14, 256, 256, 3, 1}, {14, 1024, 512, 1, 1}, {14, 512, 512, 3, 2},  {7, 512, 2048, 1, 1},
      {7, 2048, 512, 1, 1}, {7, 512, 512, 3, 1}};
  constexpr int64_t kBatch = 16;
  for (const auto& [extent, channels, filters, kernel, stride] : kLayers) {
    const std::string layer = std::to_string(extent) + "x" + std::to_string(channels) + "x" +
                              std::to_string(filters) + "/" + std::to_string(kernel) + "s" +
                              std::to_string(stride);
    const int64_t out = (extent + stride - 1) / stride, padding = kernel / 2;
    const Conv2dGradWeightAttrs attrs{
        {{stride, stride}, {padding, padding}}, {kernel, kernel}, 0};
    for (const int64_t n : {kBatch, kBatch / 2, kBatch / 4}) {
      add("weight_grad/" + layer + "/images:" + std::to_string(n), kConv2dGradWeight,
          {{n, extent, extent, channels}, {n, out, out, filters}}, attrs);
    }
    const Shape row{channels};
    add("weight_grad/" + layer + "/normalise", kBatchNorm,
        {{kBatch, extent, extent, channels}, row, row, row, row},
        BatchNormAttrs{.activation = 1});
  }
}

void add_norm(int64_t n, int64_t extent, int64_t channels) {
  const Shape x{n, extent, extent, channels}, c{channels};
  const std::string layer =
      std::to_string(extent) + "x" + std::to_string(extent) + "x" + std::to_string(channels);
  const double eps = 1e-5;
  add("batch_moments/" + layer, kBatchMoments, {x}, {});
  add("batch_norm/" + layer, kBatchNorm, {x, c, c, c, c}, BatchNormAttrs{eps, 0});
  add("batch_norm_relu/" + layer, kBatchNorm, {x, c, c, c, c}, BatchNormAttrs{eps, 1});
  add("batch_norm_relu_residual/" + layer, kBatchNorm, {x, c, c, c, c, x},
      BatchNormAttrs{eps, 1});
  add("batch_norm_grad/" + layer, kBatchNormGrad, {x, x, c, c, c},
      BatchNormGradAttrs{eps, 0, 0});
  add("batch_norm_relu_grad/" + layer, kBatchNormGrad, {x, x, c, c, c, c},
      BatchNormGradAttrs{eps, 1, 0});
  add("batch_norm_silu/" + layer, kBatchNorm, {x, c, c, c, c}, BatchNormAttrs{eps, 3});
  add("batch_norm_silu_grad/" + layer, kBatchNormGrad, {x, x, c, c, c, c},
      BatchNormGradAttrs{eps, 3, 0});
  add("silu/" + layer, kSilu, {x}, Attrs());
  add("silu_grad/" + layer, kSiluGrad, {x, x}, Attrs());
  add("relu/" + layer, kRelu, {x}, Attrs());
  const Shape signs{(x.elements() + kSignsPerWord - 1) / kSignsPerWord};
  add("relu_grad/" + layer, kReluGrad, {x, signs}, Attrs(), {DType::kFloat32, DType::kInt32});
}

// The heads of BERT-base.
void add_attention(int64_t n, int64_t tokens, double dropout, DType dtype) {
  const Shape x{n, tokens, 12, 64};
  for (const bool materialised : {true, false}) {
    const attention::AttentionAttrs attrs{materialised ? 0 : 1, 0, dropout, 0.125, 1};
    const std::string layer = std::to_string(tokens) + (dropout > 0 ? "/dropout" : "/plain") +
                              (materialised ? "/materialised" : "/memory_efficient") +
                              (dtype == DType::kBFloat16 ? "/bf16" : "");
    const Shape saved = materialised ? Shape{n, 12, tokens, tokens} : Shape{n, 12, tokens};
    add("attention/" + layer, kAttention, {x, x, x}, attrs, {dtype, dtype, dtype});
    add("attention_grad/" + layer, kAttentionGrad, {x, x, x, x, x, saved}, attrs,
        {dtype, dtype, dtype, dtype, dtype, materialised ? dtype : DType::kFloat32});
  }
}

// Causal attention to a row of 2048 tokens: of one sequence, and of eight (int32 inputs are
// their starts).
void add_packed(DType dtype) {
  const Shape x{1, 2048, 9, 64}, sums{1, 9, 2048}, starts{1, 2048};
  for (const bool packed : {false, true}) {
    const attention::AttentionAttrs attrs{1, 1, 0, 0.125, 0, packed};
    std::vector<Shape> in{x, x, x}, back{x, x, x, x, x, sums};
    std::vector<DType> types(3, dtype), back_types(5, dtype);
    back_types.push_back(DType::kFloat32);
    if (packed) {
      in.push_back(starts);
      back.push_back(starts);
      types.push_back(DType::kInt32);
      back_types.push_back(DType::kInt32);
    }
    const std::string row = std::string(packed ? "row/eight" : "row/one") +
                            (dtype == DType::kBFloat16 ? "/bf16" : "");
    add("attention/" + row, kAttention, in, attrs, types);
    add("attention_grad/" + row, kAttentionGrad, back, attrs, back_types);
  }
}

// One token of SmolLM2-135M, with the keys and values of those before it.
void add_decoding(int64_t tokens, DType dtype) {
  const Shape q{1, 1, 9, 64}, k{1, tokens, 3, 64};
  add("attention/decode/" + std::to_string(tokens) + (dtype == DType::kBFloat16 ? "/bf16" : ""),
      kAttention, {q, k, k}, attention::AttentionAttrs{1, 0, 0, 0.125, 0},
      {dtype, dtype, dtype});
}

// The rest of a BERT-base layer, and the loss over 15 % of the tokens.
void add_bert(int64_t n, int64_t tokens) {
  const int64_t rows = n * tokens, asked = rows * 15 / 100 + 1;
  const Shape x{rows, 768}, wide{rows, 3072}, gamma{768}, row{rows};
  const Shape logits{asked, 30522};
  const std::string layer = std::to_string(tokens);
  add("matmul/" + layer + "/wide", kMatmul, {x, {3072, 768}}, MatmulAttrs{0, 1});
  add("layer_norm/" + layer, kLayerNorm, {x, gamma, gamma}, LayerNormAttrs{});
  add("layer_norm_grad/" + layer, kLayerNormGrad, {x, x, gamma, row, row}, LayerNormAttrs{});
  add("gelu/" + layer, kGelu, {wide}, GeluAttrs{0});
  add("dropout/" + layer, kDropout, {x}, random::DropoutAttrs{0.1, 1});
  add("cross_entropy/" + layer, kCrossEntropy, {logits, {asked}}, loss::CrossEntropyAttrs{},
      {DType::kFloat32, DType::kInt64});
  add("cross_entropy_grad/" + layer, kCrossEntropyGrad, {{}, logits, {asked}, {asked, 2}},
      loss::CrossEntropyAttrs{}, {DType::kFloat32, DType::kFloat32, DType::kInt64});
}

// The elementwise parts of a layer of SmolLM-135M (the smallest Llama with open weights).
void add_llama(int64_t n, int64_t tokens) {
  const int64_t rows = n * tokens;
  const Shape x{rows, 576}, wide{rows, 1536}, weight{576}, row{rows};
  const Shape heads{n, tokens, 9, 64}, angles{tokens, 32};
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    const std::string layer =
        std::to_string(tokens) + (dtype == DType::kBFloat16 ? "/bf16" : "");
    const auto kFloat = DType::kFloat32;
    add("rms_norm/" + layer, kRmsNorm, {x, weight}, RmsNormAttrs{}, {dtype});
    for (const bool frozen : {false, true}) {
      add("rms_norm_grad/" + layer + (frozen ? "/frozen" : ""), kRmsNormGrad,
          {x, x, weight, row}, RmsNormGradAttrs{frozen}, {dtype, dtype});
    }
    add("silu_mul/" + layer, kSiluMul, {wide, wide}, {}, {dtype, dtype});
    add("silu_mul_grad/" + layer, kSiluMulGrad, {wide, wide, wide}, {}, {dtype, dtype, dtype});
    add("rotary/" + layer, kRotary, {heads, angles, angles}, RotaryAttrs{},
        {dtype, kFloat, kFloat});
  }
}

// SmolLM2-135M's loss over 2048 tokens: as one operator, with all gradients, without the
// weight's and without any; and each of the operators that it stands for.
void add_projection() {
  constexpr int64_t kRows = 2048, kWidth = 576, kWords = 49152;
  const Shape x{kRows, kWidth}, weight{kWords, kWidth}, logits{kRows, kWords}, labels{kRows};
  const auto kLabels = DType::kInt64;
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    const std::string type = dtype == DType::kBFloat16 ? "/bf16" : "";
    const int64_t chunk = loss::rows_of_chunk(kRows, kWords);
    for (const auto& [name, gx, gweight] :
         {std::tuple{"", 1, 1}, {"/frozen", 1, 0}, {"/no_grad", 0, 0}}) {
      const loss::LinearCrossEntropyAttrs attrs{.chunk = chunk, .gx = gx, .gweight = gweight};
      add("linear_cross_entropy" + type + name, kLinearCrossEntropy, {x, weight, labels}, attrs,
          {dtype, dtype, kLabels});
    }
    const std::string parts = "projection" + type;
    add(parts + "/matmul", kMatmul, {x, weight}, MatmulAttrs{0, 1}, {dtype, dtype});
    add(parts + "/cross_entropy", kCrossEntropy, {logits, labels}, loss::CrossEntropyAttrs{},
        {dtype, kLabels});
    add(parts + "/accuracy_count", kAccuracyCount, {logits, labels}, {}, {dtype, kLabels});
    add(parts + "/cross_entropy_grad", kCrossEntropyGrad, {{}, logits, labels, {kRows, 2}},
        loss::CrossEntropyAttrs{}, {DType::kFloat32, dtype, kLabels});
    add(parts + "/matmul_grad_weight", kMatmul, {logits, x}, MatmulAttrs{1, 0}, {dtype, dtype});
    add(parts + "/matmul_grad_x", kMatmul, {logits, weight}, MatmulAttrs{}, {dtype, dtype});
  }
}

void add_all() {
  const int64_t n = from_environment("TIDEMARK_BENCH_BATCH", 8);
  add_convolution(n, 224, 3, 64, 7, 2);
  for (int64_t stage = 0; stage < 4; ++stage) {
    const int64_t extent = 56 >> stage, width = int64_t{64} << stage;
    add_convolution(n, extent, 4 * width, width, 1, 1);
    add_convolution(n, extent, width, width, 3, 1);
    add_convolution(n, extent, width, 4 * width, 1, 1);
  }
  add_algorithms(n, 56, 64);
  add_weight_gradients();
  add_norm(n, 112, 64);
  for (int64_t stage = 0; stage < 4; ++stage) {
    add_norm(n, 56 >> stage, int64_t{64} << stage);
    add_norm(n, 56 >> stage, int64_t{256} << stage);
  }
  const Pool2dAttrs pool{{3, 3}, {2, 2}, {1, 1}};
  const Shape y{n, 56, 56, 64};
  add("max_pool2d/112x112x64", kMaxPool2d, {{n, 112, 112, 64}}, pool);
  add("max_pool2d_grad/112x112x64", kMaxPool2dGrad, {y, y}, Pool2dGradAttrs{pool, 112, 112},
      {DType::kFloat32, DType::kUInt8});
  for (const int64_t tokens : {128, 512}) {
    for (const double dropout : {0.0, 0.1}) add_attention(n, tokens, dropout, DType::kFloat32);
    add_attention(n, tokens, 0.1, DType::kBFloat16);
  }
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    add_packed(dtype);
    for (const int64_t tokens : {512, 2048}) add_decoding(tokens, dtype);
  }
  add_bert(n, 128);
  add_llama(n, 128);
  add_projection();
  add("matmul/classifier", kMatmul, {{n, 2048}, {1000, 2048}}, MatmulAttrs{0, 1});
  add("matmul/classifier_grad_weight", kMatmul, {{n, 1000}, {n, 2048}}, MatmulAttrs{1, 0});
}

}  // namespace
}  // namespace tidemark

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  tidemark::register_cuda_kernels();
  tidemark::add_all();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
