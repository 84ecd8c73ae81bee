// The share of a network's convolution arithmetic that runs on tensor cores, by the plans that
// cuDNN makes for GPUs that need not be there. Prints JSON.
//
//   tensor_core_share [NETWORK...] > bench/results/tensor_core_share.json
//
// Every convolution of a training step is planned, as training would plan it, for batches up to
// 4,096 (primes among them), A100 and H100, float32 with TF32 and bfloat16. Each row names the
// convolutions that do not run on tensor cores.
#include <algorithm>
#include <functional>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/first_line.h"
#include "bench/run_main.h"
#include "models/image_models.h"
#include "models/unet.h"
#include "ops/autograd/autograd.h"
#include "ops/conv/conv.h"
#include "ops/cudnn/convolution.h"
#include "ops/cudnn/gpu_properties.h"
#include "ops/loss/loss.h"
#include "ops/registry/kernels.h"
#include "ops/view/view.h"
#include "runtime/core/errors.h"
#include "runtime/core/log.h"
#include "runtime/schedule/step_trace.h"
#include "runtime/session/session.h"

namespace tidemark {
namespace {

using cudnn::Convolution;
using cudnn::ConvolutionPlan;
using cudnn::Pass;

struct Layer {
  Convolution problem;  // of one image
  int64_t calls = 0;    // in a training step
  double flops() const {
    const Shape& w = problem.w;
    return 2.0 * static_cast<double>(calls) * static_cast<double>(problem.y.elements()) *
           static_cast<double>(w.elements() / w[0]);
  }
};

// The convolutions whose kernels have been prepared on the simulator, in order.
std::vector<Convolution>& prepared() {
  static std::vector<Convolution> all;
  return all;
}

PreparedKernel record(Pass pass, const Conv2dAttrs& attrs, const Shape& x, const Shape& w,
                      const Shape& y, bool bias = false) {
  const auto list = [](const std::array<int64_t, 2>& values) {
    return std::vector<int64_t>(values.begin(), values.end());
  };
  prepared().push_back(
      {pass, x, w, y, list(attrs.stride), list(attrs.padding), list(attrs.dilation)});
  prepared().back().bias = bias;
  return {Bytes(0), [](const KernelArgs&) {}};
}

void record_convolutions() {
  set_kernel(kConv2d, Backend::kModel, [](const OpQuery& q) {
    return record(Pass::kForward, q.attr<Conv2dAttrs>(), q.inputs[0].shape, q.inputs[1].shape,
                  q.outputs[0].shape, q.inputs.size() == 3);
  });
  set_kernel(kConv2dGradInput, Backend::kModel, [](const OpQuery& q) {
    return record(Pass::kGradInput, q.attr<Conv2dGradInputAttrs>().conv, q.outputs[0].shape,
                  q.inputs[1].shape, q.inputs[0].shape);
  });
  set_kernel(kConv2dGradWeight, Backend::kModel, [](const OpQuery& q) {
    return record(Pass::kGradWeight, q.attr<Conv2dGradWeightAttrs>().conv, q.inputs[0].shape,
                  q.outputs[0].shape, q.inputs[1].shape);
  });
}

Tensor input(DType dtype, const Shape& shape) {
  return Session::current().upload(TensorMeta::contiguous(dtype, shape), Category::kData,
                                   nullptr, nullptr, "input");
}

// A step at batch 1.
std::function<void()> training_step(const std::string& network) {
  ParameterInit init(1);
  if (network == "unet") {
    const std::shared_ptr<SegmentationModel> model = make_unet({.channels = 3}, init);
    return [model] {
      const Tensor logits = model->forward(input(DType::kFloat32, {1, 416, 608, 3}));
      const int64_t pixels = logits.elements() / 2;
      backward(cross_entropy(reshape(logits, {pixels, 2}), input(DType::kInt64, {pixels})));
    };
  }
  const std::shared_ptr<ImageModel> model =
      make_image_model(network, {.image = 224, .classes = 1000}, init);
  return [model] {
    backward(cross_entropy(model->forward(input(DType::kFloat32, {1, 224, 224, 3})),
                           input(DType::kInt64, {1})));
  };
}

std::vector<Layer> layers_of(const std::string& network) {
  DeviceProfile profile = load_profile("a100-80gb");
  profile.name += " for " + network;  // kernels are shared by the devices of one name
  prepared().clear();
  Session session({.threads = 1, .budget = Bytes(int64_t{1} << 50), .policy = "none"},
                  make_sim_device(profile));
  const StepTrace trace = session.record_step(training_step(network));
  // Kernels are prepared where a signature first occurs.
  std::vector<uint64_t> signatures;
  std::vector<Layer> layers;
  for (const StepTrace::Op& op : trace.ops) {
    if (!op.name.starts_with("conv2d")) continue;
    const auto at = std::find(signatures.begin(), signatures.end(), op.signature);
    const auto number = static_cast<size_t>(at - signatures.begin());
    if (at == signatures.end()) {
      signatures.push_back(op.signature);
      layers.push_back({prepared().at(number)});
    }
    ++layers[number].calls;
  }
  TIDEMARK_CHECK(layers.size() == prepared().size(), "a convolution for each signature");
  return layers;
}

// "gradient of w, x (8, 224, 224, 3), w (64, 7, 7, 3)".
std::string described(const Convolution& problem) {
  const char* const pass = problem.pass == Pass::kForward     ? "forward"
                           : problem.pass == Pass::kGradInput ? "gradient of x"
                                                              : "gradient of w";
  return std::string(pass) + ", x " + problem.x.to_string() + ", w " + problem.w.to_string();
}

nlohmann::json measure(const std::vector<Layer>& layers, int64_t batch, DType dtype,
                       const cudnn::Descriptor& device) {
  double all = 0, on_tensor_cores = 0;
  int64_t biases = 0, added = 0;
  size_t slices = 0;
  Bytes workspace{0};
  std::vector<std::string> others;
  for (const Layer& layer : layers) {
    Convolution problem = layer.problem;
    problem.x[0] = problem.y[0] = batch;
    problem.dtype = dtype;
    const ConvolutionPlan plan(problem, device);
    all += layer.flops();
    if (plan.traits().tensor_cores) {
      on_tensor_cores += layer.flops();
    } else {
      others.push_back(described(problem));
    }
    biases += problem.bias ? layer.calls : 0;
    added += plan.adds_bias() ? layer.calls : 0;
    slices = std::max(slices, plan.slices().size());
    workspace = std::max(workspace, plan.workspace());
  }
  return {{"batch", batch},
          {"share", on_tensor_cores / all},
          {"not_on_tensor_cores", others},
          {"biases", biases},
          {"biases_added_by_cudnn", added},
          {"most_slices", slices},
          {"largest_workspace_bytes", workspace.count()}};
}

int run(int argc, char** argv) {
  if (const auto code = explain_usage(
          argc, argv, argc > 1 && argv[1][0] == '-',
          "tensor_core_share [NETWORK...] > tensor_core_share.json\n\n"
          "The share of convolutions' arithmetic on tensor cores, by cuDNN's plans.")) {
    return *code;
  }
  std::vector<std::string> networks(argv + 1, argv + argc);
  if (networks.empty()) networks = {"resnet50", "resnext50_32x4d", "unet", "vgg16"};
  log().set_level(spdlog::level::err);  // the warning is what this program measures
  record_convolutions();
  nlohmann::json rows = nlohmann::json::array();
  for (const std::string& network : networks) {
    const std::vector<Layer> layers = layers_of(network);
    for (const cudnn::Gpu& gpu : {cudnn::kA100, cudnn::kH100}) {
      const cudnn::Descriptor device = cudnn::properties(gpu);
      for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
        for (const int64_t batch :
             {1,   2,   7,   16,  31,  32,   40,   48,   56,   64,   127,  128, 251,
              256, 257, 384, 509, 512, 1021, 1024, 2039, 2048, 3072, 4093, 4096}) {
          nlohmann::json row = measure(layers, batch, dtype, device);
          row["network"] = network;
          row["gpu"] = gpu.name;
          row["dtype"] = to_string(dtype);
          std::cerr << row.dump() << "\n";
          rows.push_back(std::move(row));
        }
      }
    }
  }
  std::cout << nlohmann::json{{"device", "plans for the named GPUs, made without them"},
                              {"commit", commit_of(".")},
                              {"cudnn", CUDNN_VERSION},
                              {"rows", rows}}
                   .dump(1)
            << "\n";
  return 0;
}

}  // namespace
}  // namespace tidemark

int main(int argc, char** argv) {
  return tidemark::run_main("tensor_core_share", tidemark::run, argc, argv, 2);
}
