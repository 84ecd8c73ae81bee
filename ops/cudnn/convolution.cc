#include "ops/cudnn/convolution.h"

#include <algorithm>
#include <array>
#include <utility>

#include "runtime/core/errors.h"
#include "runtime/core/log.h"

namespace tidemark::cudnn {
namespace {

enum : int64_t { kX = 1, kW = 2, kY = 3 };
constexpr int64_t kByteAlignment = 16;
constexpr int64_t kMaxSlices = 8;

// A channels-last tensor in place, in cuDNN's order of dimensions: C after N.
Descriptor tensor(const Shape& shape, DType dtype, int64_t id) {
  const auto in_order = [](const Shape& values) {
    std::vector<int64_t> ordered(values.begin(), values.end());
    std::rotate(ordered.begin() + 1, ordered.end() - 1, ordered.end());
    return ordered;
  };
  const std::vector<int64_t> dims = in_order(shape);
  const std::vector<int64_t> strides = in_order(contiguous_strides(shape));
  Descriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE,
             dtype == DType::kBFloat16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT);
  tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::span<const int64_t>(dims));
  tensor.set(CUDNN_ATTR_TENSOR_STRIDES, std::span<const int64_t>(strides));
  tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
  tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kByteAlignment);
  tensor.finalize();
  return tensor;
}

Descriptor geometry(const Convolution& problem) {
  Descriptor geometry(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  using Values = std::span<const int64_t>;
  geometry.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS,
               static_cast<int64_t>(problem.stride.size()));
  geometry.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  geometry.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION);
  geometry.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, Values(problem.padding));
  geometry.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, Values(problem.padding));
  geometry.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, Values(problem.dilation));
  geometry.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, Values(problem.stride));
  geometry.finalize();
  return geometry;
}

struct PassNames {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t conv, x, w, y, alpha, beta;
};

constexpr PassNames names_of(Pass pass) {
  switch (pass) {
    case Pass::kForward:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case Pass::kGradInput:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case Pass::kGradWeight: break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
}

// The GPU that plans are for: that of a handle, or one with these properties.
struct Target {
  cudnnHandle_t handle;
  const Descriptor* properties;
};

// The result is `beta` times its old value plus the convolution.
Descriptor operation_graph(const Convolution& problem, const Target& target, float beta) {
  const PassNames names = names_of(problem.pass);
  Descriptor operation(names.operation);
  operation.set(names.conv, geometry(problem));
  operation.set(names.x, tensor(problem.x, problem.dtype, kX));
  operation.set(names.w, tensor(problem.w, problem.dtype, kW));
  operation.set(names.y, tensor(problem.y, problem.dtype, kY));
  operation.set(names.alpha, 1.0f);
  operation.set(names.beta, beta);
  operation.finalize();
  Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
  if (target.handle) graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, target.handle);
  graph.finalize();
  return graph;
}

// Engine configurations, best first; none if this mode does not know the problem.
std::vector<Descriptor> suggestions(const Descriptor& graph, const Target& target,
                                    cudnnBackendHeurMode_t mode) {
  Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
  if (!target.handle) {
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *target.properties);
  }
  std::vector<Descriptor> configs;
  if (!heuristics.finalize_if_supported()) return configs;
  int64_t count = 0;
  check(cudnnBackendGetAttribute(heuristics.raw(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr),
        "cudnnBackendGetAttribute");
  std::vector<cudnnBackendDescriptor_t> raw;
  for (int64_t i = 0; i < count; ++i) {
    configs.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    raw.push_back(configs.back().raw());
  }
  int64_t filled = 0;
  check(cudnnBackendGetAttribute(heuristics.raw(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &filled, raw.data()),
        "cudnnBackendGetAttribute");
  configs.erase(configs.begin() + std::min(filled, count), configs.end());
  return configs;
}

EngineTraits traits_of(const Descriptor& engine) {
  EngineTraits traits;
  for (auto note : engine.get_all<cudnnBackendNumericalNote_t>(
           CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT)) {
    switch (note) {
      case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC: traits.deterministic = false; break;
      case CUDNN_NUMERICAL_NOTE_TENSOR_CORE: traits.tensor_cores = true; break;
      case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS: traits.down_converts = true; break;
      case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION: traits.rounds_sums = true; break;
      case CUDNN_NUMERICAL_NOTE_FFT:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13: traits.transforms = true; break;
      default: break;
    }
  }
  for (auto note : engine.get_all<cudnnBackendBehaviorNote_t>(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE,
                                                              CUDNN_BEHAVIOR_NOTE_TYPE_COUNT)) {
    if (note == CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) traits.compiles = true;
  }
  return traits;
}

const char* name_of(Pass pass) {
  switch (pass) {
    case Pass::kForward: return "forward";
    case Pass::kGradInput: return "gradient of x";
    case Pass::kGradWeight: return "gradient of w";
  }
  return "?";
}

std::string described(const Convolution& problem) {
  return std::string(to_string(problem.dtype)) + " " + name_of(problem.pass) + " of x " +
         problem.x.to_string() + ", w " + problem.w.to_string() + ", y " +
         problem.y.to_string();
}

struct Choice {
  std::unique_ptr<Descriptor> plan;  // null: no engine is acceptable
  EngineTraits traits;
  std::string name;
  bool passed_over = false;  // a tensor-core engine was rejected for its workspace
  int suggestions = 0;
};

Choice choose(const Convolution& problem, const Target& target, float beta) {
  const Descriptor graph = operation_graph(problem, target, beta);
  const bool tensor_cores = problem.tf32 || problem.dtype == DType::kBFloat16;
  Choice choice;
  for (auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (const Descriptor& config : suggestions(graph, target, mode)) {
      const int rank = choice.suggestions++;
      const Descriptor engine =
          config.get_part(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
      EngineTraits traits = traits_of(engine);
      // Checked before the plan is made, which costs most.
      if (!acceptable(traits, tensor_cores)) continue;
      auto plan = std::make_unique<Descriptor>(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      plan->set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
      if (target.handle) {
        plan->set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, target.handle);
      } else {
        plan->set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *target.properties);
      }
      // Heuristics may name engines that do not support the problem.
      if (!plan->finalize_if_supported()) continue;
      traits.workspace = Bytes(plan->get<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
      if (!acceptable(traits, tensor_cores)) {
        choice.passed_over = choice.passed_over || traits.tensor_cores;
        continue;
      }
      choice.plan = std::move(plan);
      choice.traits = traits;
      choice.name = "engine " +
                    std::to_string(engine.get<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX)) +
                    ", rank " + std::to_string(rank);
      return choice;
    }
  }
  return choice;
}

Convolution slice_of(Convolution problem, int64_t slices) {
  problem.x[0] /= slices;
  problem.y[0] /= slices;
  return problem;
}

}  // namespace

bool acceptable(const EngineTraits& traits, bool tf32) {
  return traits.deterministic && !traits.down_converts && !traits.rounds_sums &&
         !traits.transforms && !traits.compiles && (tf32 || !traits.tensor_cores) &&
         traits.workspace <= kWorkspaceCap;
}

ConvolutionPlan::ConvolutionPlan(const Convolution& problem, cudnnHandle_t handle,
                                 const Descriptor* properties) {
  const Target target{handle, properties};
  Choice choice = choose(problem, target, 0);
  Choice adding;
  // In bfloat16 partial results would be rounded between slices, and its engines do not copy.
  const bool slice =
      choice.passed_over && !choice.traits.tensor_cores && problem.dtype == DType::kFloat32;
  for (int64_t slices = 2; slice && slices <= kMaxSlices; ++slices) {
    if (problem.x[0] % slices != 0) continue;
    const Convolution part = slice_of(problem, slices);
    const Bytes x_slice = size_of(problem.dtype) * part.x.elements(),
                y_slice = size_of(problem.dtype) * part.y.elements();
    if ((x_slice.count() | y_slice.count()) % kByteAlignment != 0) continue;
    Choice first = choose(part, target, 0), others;
    if (!first.traits.tensor_cores) continue;
    if (problem.pass == Pass::kGradWeight) {
      others = choose(part, target, 1);
      if (!others.traits.tensor_cores) continue;
      first.traits.workspace = std::max(first.traits.workspace, others.traits.workspace);
    }
    choice = std::move(first);
    choice.name += ", " + std::to_string(slices) + " slices";
    adding = std::move(others);
    slices_ = slices;
    x_slice_ = x_slice;
    y_slice_ = y_slice;
    break;
  }
  if (!choice.plan) {
    throw DeviceError("no deterministic engine within " + format_bytes(kWorkspaceCap) +
                      " for the " + described(problem) + " among the " +
                      std::to_string(choice.suggestions) + " suggested");
  }
  plan_ = std::move(choice.plan);
  adding_ = std::move(adding.plan);
  traits_ = choice.traits;
  name_ = std::move(choice.name);
  log().debug("cuDNN: {}: {}{}, workspace {}", described(problem), name_,
              traits_.tensor_cores ? ", tensor cores" : "", format_bytes(traits_.workspace));
}

void ConvolutionPlan::run(cudnnHandle_t handle, void* x, void* w, void* y,
                          void* workspace) const {
  const std::array<int64_t, 3> ids{kX, kW, kY};
  for (int64_t i = 0; i < slices_; ++i) {
    const std::array<void*, 3> pointers{static_cast<std::byte*>(x) + i * x_slice_.count(), w,
                                        static_cast<std::byte*>(y) + i * y_slice_.count()};
    Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, std::span<const int64_t>(ids));
    pack.set_pointers(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, pointers);
    pack.set_pointers(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, {&workspace, 1});
    pack.finalize();
    const Descriptor& plan = i > 0 && adding_ ? *adding_ : *plan_;
    check(cudnnBackendExecute(handle, plan.raw(), pack.raw()), "cudnnBackendExecute");
  }
}

}  // namespace tidemark::cudnn
