// Measures the issuing thread's time per operator, whatever the operator computes: shape
// inference, pricing, memory, bookkeeping for gradients, launch. Tensors are tiny. On a GPU
// this time has to stay below that of the kernels, or the GPU waits for the host.
//
//   host_overhead [--benchmark_filter=sim]     TIDEMARK_BENCH_DEVICE=cuda
//
// Runs on the simulator, where a launch is bookkeeping only, and on the device that the
// environment names, if any. `per_operator` is the issuing thread's own CPU time in seconds; it
// does not include work on other threads or waiting for them.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "bench/run_main.h"
#include "models/optim/optimizer.h"
#include "models/resnet.h"
#include "ops/autograd/autograd.h"
#include "ops/elementwise/elementwise.h"
#include "ops/loss/loss.h"
#include "ops/reduce/reduce.h"
#include "ops/register.h"
#include "runtime/core/errors.h"
#include "runtime/session/dry_run.h"

namespace tidemark {
namespace {

using namespace tidemark::literals;

constexpr int kChain = 200;  // operators of a step

Tensor upload(const Shape& shape, DType dtype, const char* name) {
  const TensorMeta meta = TensorMeta::contiguous(dtype, shape);
  const auto zeros =
      std::make_shared<std::vector<std::byte>>(static_cast<size_t>(meta.bytes().count()));
  return Session::current().upload(meta, Category::kData, zeros->data(), zeros, name);
}

SessionOptions options(const std::string& device) {
  SessionOptions options;
  options.device = device;
  options.threads = 1;
  options.budget = 64_MiB;
  // Managed, but everything fits: the cost in a run with memory to spare.
  options.unmanaged_peak = 64_MiB;
  return options;
}

// Runs steps of the session for the benchmark, and counts their operators.
template <class Step>
void measure(benchmark::State& state, Session& session, const Step& step) {
  session.step(step);  // kernels are prepared
  int64_t operators = 0;
  for (auto _ : state) {
    const StepStats& stats = session.step(step);
    operators += stats.operators + stats.recomputes;
  }
  state.SetItemsProcessed(operators);
  state.counters["per_operator"] =
      benchmark::Counter(static_cast<double>(operators),
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void unary(benchmark::State& state, const std::string& device) {
  Session session(options(device));
  const Tensor x = upload({16}, DType::kFloat32, "x");
  measure(state, session, [&] {
    Tensor y = x;
    for (int i = 0; i < kChain; ++i) y = relu(y);
  });
}

void binary(benchmark::State& state, const std::string& device) {
  Session session(options(device));
  const Tensor x = upload({16}, DType::kFloat32, "x");
  measure(state, session, [&] {
    Tensor y = x;
    for (int i = 0; i < kChain; ++i) y = add(y, x);
  });
}

void with_gradients(benchmark::State& state, const std::string& device) {
  Session session(options(device));
  Tensor x = upload({16}, DType::kFloat32, "x");
  require_grad(x);
  measure(state, session, [&] {
    Tensor y = x;
    for (int i = 0; i < kChain / 2; ++i) y = sigmoid(y);
    backward(sum(y));
    clear_grad(x);
  });
}

class Network {
 public:
  Network()
      : init_(1),
        model_(options(), init_),
        images_(upload({2, 8, 8, 1}, DType::kFloat32, "images")),
        labels_(upload({2}, DType::kInt64, "labels")),
        sgd_(make_sgd(model_.parameters(), {.lr = 0.1, .momentum = 0.9})) {}
  void train() const {
    backward(cross_entropy(model_.forward(images_), labels_));
    sgd_->step();
  }

 private:
  static ResNetOptions options() {
    ResNetOptions options = resnet_options("resnet50");
    options.cifar_stem = true;
    options.in_channels = 1;
    options.classes = 10;
    return options;
  }
  ParameterInit init_;
  ResNet model_;
  Tensor images_, labels_;
  std::unique_ptr<Optimizer> sgd_;
};

// ResNet-50 on images of 8x8 pixels, for its operators; its weights make no difference where
// nothing is computed. `share`: the budget as a share of the unmanaged peak; 1: all of it.
void training(benchmark::State& state, const std::string& device, double share) {
  SessionOptions real = options(device);
  real.budget.reset();
  const auto program = [] {
    const auto network = std::make_shared<Network>();
    const auto step = [network] { network->train(); };
    return std::vector<std::function<void()>>{step, step};
  };
  const UnmanagedNeed need = measure_unmanaged(real, program);
  real.unmanaged_peak = real.budget = need.peak;
  if (share < 1) {
    real.host_limit = 2 * need.peak;
    const Bytes least = find_minimum_budget(real, program, need).budget;
    real.budget = std::max(least, align_down(share_of(need.peak, share)));
  }
  Session session(real);
  const Network network;
  measure(state, session, [&] { network.train(); });
}

void add_all(const std::string& device) {
  const auto name = [&](const char* what) {
    return std::string(what) + "/" + device.substr(0, device.find(':'));
  };
  const auto add = [&](const char* what, auto run) {
    benchmark::RegisterBenchmark(name(what).c_str(), run)->Unit(benchmark::kMicrosecond);
  };
  add("relu", [=](benchmark::State& state) { unary(state, device); });
  add("add", [=](benchmark::State& state) { binary(state, device); });
  add("sigmoid_and_gradient", [=](benchmark::State& state) { with_gradients(state, device); });
  add("resnet50_step", [=](benchmark::State& state) { training(state, device, 1); });
  add("resnet50_step_half_the_memory",
      [=](benchmark::State& state) { training(state, device, 0.5); });
}

int run(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  register_cuda_kernels();
  add_all("sim:a100-80gb");
  if (const char* device = std::getenv("TIDEMARK_BENCH_DEVICE")) add_all(device);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

}  // namespace
}  // namespace tidemark

int main(int argc, char** argv) {
  return tidemark::run_main("host_overhead", tidemark::run, argc, argv, 2);
}
