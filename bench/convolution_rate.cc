#include "bench/convolution_rate.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include "ops/autograd/autograd.h"
#include "ops/conv/conv.h"
#include "ops/random/random.h"
#include "ops/register.h"
#include "ops/registry/dispatch.h"
#include "runtime/session/session.h"

namespace tidemark {
namespace {

constexpr int kRuns = 4;

struct Layer {
  int64_t extent, in, out, window;
};
// Three layers for each stage: narrow, convolve, widen.
std::vector<Layer> layers() {
  std::vector<Layer> all;
  for (int64_t stage = 0; stage < 4; ++stage) {
    const int64_t extent = 56 >> stage, width = int64_t{64} << stage;
    all.push_back({extent, 4 * width, width, 1});
    all.push_back({extent, width, width, 3});
    all.push_back({extent, width, 4 * width, 1});
  }
  return all;
}

// Runs the three passes. Each is one operator, whose times are in the session's events.
void run_passes(const Layer& layer, const Tensor& x, const Tensor& w, const Tensor& gy) {
  const int64_t padding = layer.window / 2;
  const Conv2dAttrs conv{.padding = {padding, padding}};
  dispatch(kConv2d, {x, w}, conv);
  dispatch(kConv2dGradInput, {gy, w}, Conv2dGradInputAttrs{conv, layer.extent, layer.extent});
  dispatch(kConv2dGradWeight, {x, gy},
           Conv2dGradWeightAttrs{conv, layer.window, layer.window, 0});
}

// The sum of the fastest run of each pass, in seconds.
double seconds_of(Session& session) {
  std::map<std::string_view, Nanos> fastest;
  session.events().for_each([&](const EventRecord& event) {
    if (event.kind != EventKind::kOperator || event.end == Nanos(0)) return;
    if (!std::string_view(event.op).starts_with("conv2d")) return;
    const Nanos time = event.end - event.start;
    const auto [found, is_new] = fastest.emplace(event.op, time);
    if (!is_new) found->second = std::min(found->second, time);
  });
  double seconds = 0;
  for (const auto& [name, time] : fastest) seconds += to_seconds(time);
  return seconds;
}

}  // namespace

double convolution_rate(const std::string& device, int64_t batch) {
  register_cuda_kernels();
  double flops = 0, seconds = 0;
  for (const Layer& layer : layers()) {
    Session session({.device = device, .policy = "none"});
    const NoGrad no_grad;
    const Tensor x = uniform({batch, layer.extent, layer.extent, layer.in}, -1, 1);
    const Tensor w = uniform({layer.out, layer.window, layer.window, layer.in}, -1, 1);
    const Tensor gy = uniform({batch, layer.extent, layer.extent, layer.out}, -1, 1);
    for (int run = 0; run < kRuns; ++run) session.step([&] { run_passes(layer, x, w, gy); });
    constexpr int kPasses = 3;
    flops += kPasses * 2.0 * static_cast<double>(batch * layer.extent * layer.extent) *
             static_cast<double>(layer.in * layer.out * layer.window * layer.window);
    seconds += seconds_of(session);
  }
  return flops / seconds;
}

}  // namespace tidemark
