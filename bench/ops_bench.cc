// Operators on the CPU, one kernel at a time, with the layers of ResNet-50 at 224x224.
//
//   ops_bench [--benchmark_filter=conv2d/.*]     TIDEMARK_BENCH_THREADS, TIDEMARK_BENCH_BATCH
//
// Each reports GFLOP/s, and the bytes of its inputs and outputs per second.
#include <benchmark/benchmark.h>
#include <omp.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "ops/attention/kernels.h"
#include "ops/conv/conv2d.h"
#include "ops/elementwise/unary.h"
#include "ops/linear/matmul.h"
#include "ops/norm/batch_norm.h"
#include "ops/pool/max_pool2d.h"

namespace tidemark {
namespace {

int from_environment(const char* name, int otherwise) {
  const char* value = std::getenv(name);
  return value ? std::atoi(value) : otherwise;
}

class Block {
 public:
  explicit Block(Bytes bytes)
      : memory_(static_cast<std::byte*>(
            std::aligned_alloc(static_cast<size_t>(kAlignment.count()),
                               static_cast<size_t>((align_up(bytes) + kAlignment).count())))) {
    float* values = reinterpret_cast<float*>(memory_.get());
    for (int64_t i = 0; i < bytes.count() / 4; ++i) {
      values[i] = static_cast<float>(i * 7919 % 1009) / 1009.0F - 0.25F;
    }
  }
  std::byte* data() const { return memory_.get(); }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte, Free> memory_;
};

void run(benchmark::State& state, const OpDef& op, const std::vector<Shape>& shapes,
         const Attrs& attrs, const std::vector<DType>& dtypes = {}) {
  const int threads = from_environment("TIDEMARK_BENCH_THREADS", omp_get_num_procs());
  omp_set_num_threads(threads);
  std::vector<TensorMeta> in;
  for (size_t i = 0; i < shapes.size(); ++i) {
    in.push_back(
        TensorMeta::contiguous(i < dtypes.size() ? dtypes[i] : DType::kFloat32, shapes[i]));
  }
  const std::vector<TensorMeta> out = op.infer({in, {}, attrs, threads});
  const OpQuery query{in, out, attrs, threads};
  const PreparedKernel kernel = op.prepare[static_cast<size_t>(Backend::kCpu)](query);
  std::vector<Block> blocks;
  std::vector<std::byte*> inputs, outputs;
  for (const TensorMeta& meta : in) inputs.push_back(blocks.emplace_back(meta.bytes()).data());
  for (const TensorMeta& meta : out)
    outputs.push_back(blocks.emplace_back(meta.bytes()).data());
  const Block workspace(kernel.workspace);
  const Scalars scalars{};
  const KernelArgs args{in, out, inputs, outputs, workspace.data(), attrs, scalars, nullptr};
  kernel.run(args);  // generates code
  for (auto _ : state) kernel.run(args);
  const OpCost cost = op.cost(query);
  state.counters["GFLOP/s"] =
      benchmark::Counter(cost.flops * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["GB/s"] =
      benchmark::Counter(static_cast<double>(cost.bytes_moved.count()) * 1e-9,
                         benchmark::Counter::kIsIterationInvariantRate);
  state.counters["workspace_MiB"] = to_mib(kernel.workspace);
}

void add(const std::string& name, const OpDef& op, const std::vector<Shape>& shapes,
         const Attrs& attrs, const std::vector<DType>& dtypes = {}) {
  benchmark::RegisterBenchmark(name.c_str(),
                               [&op, shapes, attrs, dtypes](benchmark::State& state) {
                                 run(state, op, shapes, attrs, dtypes);
                               })
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
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

void add_norm(int64_t n, int64_t extent, int64_t channels) {
  const Shape x{n, extent, extent, channels}, c{channels};
  const std::string layer =
      std::to_string(extent) + "x" + std::to_string(extent) + "x" + std::to_string(channels);
  const double eps = 1e-5;
  add("batch_norm/" + layer, kBatchNorm, {x, c, c}, BatchNormAttrs{eps, 0});
  add("batch_norm_relu/" + layer, kBatchNorm, {x, c, c}, BatchNormAttrs{eps, 1});
  add("batch_norm_relu_residual/" + layer, kBatchNorm, {x, c, c, x}, BatchNormAttrs{eps, 1});
  add("batch_norm_grad/" + layer, kBatchNormGrad, {x, x, c, c, c},
      BatchNormGradAttrs{eps, 0, 0});
  add("batch_norm_relu_grad/" + layer, kBatchNormGrad, {x, x, c, c, c, c},
      BatchNormGradAttrs{eps, 1, 0});
  add("relu_grad/" + layer, kReluGrad, {x, x}, Attrs());
}

// BERT-base's heads.
void add_attention(int64_t n, int64_t tokens, double dropout) {
  const Shape x{n, tokens, 12, 64};
  for (const bool materialised : {true, false}) {
    const attention::AttentionAttrs attrs{materialised ? 0 : 1, 0, dropout, 0.125, 1};
    const std::string layer = std::to_string(tokens) + (dropout > 0 ? "/dropout" : "/plain") +
                              (materialised ? "/materialised" : "/memory_efficient");
    const Shape saved = materialised ? Shape{n, 12, tokens, tokens} : Shape{n, 12, tokens};
    add("attention/" + layer, kAttention, {x, x, x}, attrs);
    add("attention_grad/" + layer, kAttentionGrad, {x, x, x, x, x, saved}, attrs);
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
    for (const double dropout : {0.0, 0.1}) add_attention(n, tokens, dropout);
  }
  add("matmul/classifier", kMatmul, {{n, 2048}, {1000, 2048}}, MatmulAttrs{0, 1});
  add("matmul/classifier_grad_weight", kMatmul, {{n, 1000}, {n, 2048}}, MatmulAttrs{1, 0});
}

}  // namespace
}  // namespace tidemark

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  tidemark::add_all();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
