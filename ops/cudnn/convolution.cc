#include "ops/cudnn/convolution.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "runtime/core/errors.h"
#include "runtime/core/log.h"
#include "runtime/device/cuda/check.h"
#include "runtime/device/cuda/launches.h"

namespace tidemark::cudnn {
namespace {

enum : int64_t { kX = 1, kW = 2, kY = 3, kBias = 4, kProducts = 5 };
constexpr int64_t kByteAlignment = 16;
// An engine copies or pads inputs, convolves, and adds up parts; at most so many kernels.
constexpr int64_t kLaunchesOfEngine = 6;
// cuDNN's engines index with 32 bits.
constexpr int64_t kMaxElements = (int64_t{1} << 31) - 1;

// A channels-last tensor in place, in cuDNN's order of dimensions: C after N. A virtual one
// passes from one operation of a graph to the next and is never stored.
Descriptor tensor(const Shape& shape, DType dtype, int64_t id, bool is_virtual = false) {
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
  tensor.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, is_virtual);
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

// y = products + bias, in float32; none if cuDNN does not support it.
std::optional<Descriptor> bias_addition(const Convolution& problem, const Descriptor& products,
                                        const Descriptor& y) {
  Descriptor sum(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  sum.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_POINTWISE_ADD);
  sum.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
  if (!sum.finalize_if_supported()) return std::nullopt;
  Shape bias = problem.y;
  for (size_t d = 0; d + 1 < bias.rank(); ++d) bias[d] = 1;
  Descriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, sum);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, products);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, tensor(bias, problem.dtype, kBias));
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  if (!operation.finalize_if_supported()) return std::nullopt;
  return operation;
}

// The result is `beta` times its old value plus the convolution and, if the problem has one,
// the bias. None if cuDNN does not support this, as an older one may not with a bias.
std::optional<Descriptor> operation_graph(const Convolution& problem, const Target& target,
                                          float beta) {
  const PassNames names = names_of(problem.pass);
  const Descriptor y = tensor(problem.y, problem.dtype, kY);
  const Descriptor products = tensor(problem.y, DType::kFloat32, kProducts, problem.bias);
  std::vector<Descriptor> operations;
  Descriptor& convolution = operations.emplace_back(names.operation);
  convolution.set(names.conv, geometry(problem));
  convolution.set(names.x, tensor(problem.x, problem.dtype, kX));
  convolution.set(names.w, tensor(problem.w, problem.dtype, kW));
  convolution.set(names.y, problem.bias ? products : y);
  convolution.set(names.alpha, 1.0f);
  convolution.set(names.beta, beta);
  convolution.finalize();
  if (problem.bias) {
    std::optional<Descriptor> addition = bias_addition(problem, products, y);
    if (!addition) return std::nullopt;
    operations.push_back(std::move(*addition));
  }
  Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, std::span<const Descriptor>(operations));
  if (target.handle) graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, target.handle);
  if (!graph.finalize_if_supported()) return std::nullopt;
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
  std::shared_ptr<const Descriptor> plan;  // null: no engine is acceptable
  EngineTraits traits;
  std::string name;
  // The least workspace of the tensor-core engines that were rejected for theirs; 0: none was.
  Bytes lacking{0};
  int suggestions = 0;
};

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

bool allows_tensor_cores(const Convolution& problem) {
  return problem.tf32 || problem.dtype == DType::kBFloat16;
}

// Null: heuristics may name engines that do not support the problem. Sets the workspace.
std::shared_ptr<Descriptor> make_plan(const Descriptor& config, const Target& target,
                                      EngineTraits& traits) {
  auto plan = std::make_shared<Descriptor>(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan->set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
  if (target.handle) {
    plan->set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, target.handle);
  } else {
    plan->set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *target.properties);
  }
  if (!plan->finalize_if_supported()) return nullptr;
  traits.workspace = Bytes(plan->get<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
  return plan;
}

// One of cuDNN's suggestions for a problem.
struct Suggestion {
  const Descriptor& config;
  int64_t engine;
  std::string name;
  EngineTraits traits;  // the workspace is known once the plan is made
};

// Calls f(suggestion) for each, best first, until it returns true.
template <class F>
void for_each_suggestion(const Convolution& problem, const Target& target, float beta,
                         const F& f) {
  const std::optional<Descriptor> graph = operation_graph(problem, target, beta);
  if (!graph) return;
  int rank = 0;
  for (auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (const Descriptor& config : suggestions(*graph, target, mode)) {
      const Descriptor engine =
          config.get_part(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
      const auto index = engine.get<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
      Suggestion found{config, index,
                       "engine " + std::to_string(index) + ", rank " + std::to_string(rank++),
                       traits_of(engine)};
      if (f(found)) return;
    }
  }
}

// The first acceptable engine with tensor cores, if they are allowed, or else the first
// acceptable one. With a channel for each group, tensor cores multiply mostly zeros: cuDNN's
// first choice is then taken.
Choice choose(const Convolution& problem, const Target& target, float beta) {
  const bool tensor_cores = allows_tensor_cores(problem);
  const bool named = !problem.algorithm.empty();
  const bool prefers_tensor_cores =
      tensor_cores && !named && problem.w[problem.w.rank() - 1] > 1;
  const auto accepts = named ? acceptable_by_name : acceptable;
  Choice choice;
  for_each_suggestion(problem, target, beta, [&](Suggestion& found) {
    ++choice.suggestions;
    // Checked before the plan is made, which costs most.
    if ((named && found.name != problem.algorithm) || !accepts(found.traits, tensor_cores) ||
        (choice.plan && !found.traits.tensor_cores)) {
      return false;
    }
    std::shared_ptr<Descriptor> plan = make_plan(found.config, target, found.traits);
    if (!plan) return false;
    if (!accepts(found.traits, tensor_cores)) {
      const Bytes workspace = found.traits.workspace;
      if (found.traits.tensor_cores &&
          (choice.lacking == Bytes(0) || workspace < choice.lacking)) {
        choice.lacking = workspace;
      }
      return false;
    }
    choice.plan = std::move(plan);
    choice.traits = found.traits;
    choice.name = std::move(found.name);
    return !prefers_tensor_cores || choice.traits.tensor_cores;
  });
  return choice;
}

std::vector<std::string> list_others(const Convolution& problem, const Target& target) {
  if (std::max(problem.x.elements(), problem.y.elements()) > kMaxElements) return {};
  const bool tensor_cores = allows_tensor_cores(problem);
  const Choice usual = choose(problem, target, 0);
  std::set<std::pair<int64_t, Bytes>> seen;  // engines and their workspaces
  std::vector<std::string> names;
  for_each_suggestion(problem, target, 0, [&](Suggestion& found) {
    const bool possible = acceptable_by_name(found.traits, tensor_cores) &&
                          make_plan(found.config, target, found.traits);
    if (possible && seen.emplace(found.engine, found.traits.workspace).second &&
        found.name != usual.name) {
      names.push_back(std::move(found.name));
    }
    return false;
  });
  return names;
}

Bytes image_of(const Shape& shape, DType dtype) {
  return size_of(dtype) * (shape.elements() / shape[0]);
}

// The least number of images of which x and y slices start at aligned addresses.
int64_t aligned_images(const Convolution& problem) {
  int64_t images = 1;
  for (const Shape* shape : {&problem.x, &problem.y}) {
    const int64_t bytes = image_of(*shape, problem.dtype).count();
    while (bytes * images % kByteAlignment != 0) images *= 2;
  }
  return images;
}

// Slices of equal size, as far as that is possible; the larger ones first.
std::vector<ConvolutionPlan::Slice> cut(int64_t batch, int64_t unit, int64_t slices) {
  const int64_t units = ceil_div(batch, unit);
  std::vector<ConvolutionPlan::Slice> result;
  for (int64_t first = 0, i = 0; i < slices; ++i) {
    const int64_t images =
        std::min((units / slices + (i < units % slices ? 1 : 0)) * unit, batch - first);
    result.push_back({first, images, nullptr});
    first += images;
  }
  return result;
}

void warn_without_tensor_cores(const std::string& problem, const std::string& engine) {
  static std::atomic<bool> warned = false;
  if (warned.exchange(true)) return;
  log().warn(
      "cuDNN: the {} runs without tensor cores, by {}; others may too (TIDEMARK_LOG=debug logs "
      "each)",
      problem, engine);
}

}  // namespace

bool acceptable_by_name(const EngineTraits& traits, bool tf32) {
  return traits.deterministic && !traits.down_converts && !traits.rounds_sums &&
         !traits.compiles && (tf32 || !traits.tensor_cores);
}

bool acceptable(const EngineTraits& traits, bool tf32) {
  return acceptable_by_name(traits, tf32) && !traits.transforms &&
         traits.workspace <= kWorkspaceCap;
}

std::vector<std::string> other_plans(const Convolution& problem, cudnnHandle_t handle) {
  return list_others(problem, {handle, nullptr});
}
std::vector<std::string> other_plans(const Convolution& problem, const Descriptor& properties) {
  return list_others(problem, {nullptr, &properties});
}

int ConvolutionPlan::find_engines(const Convolution& problem, cudnnHandle_t handle,
                                  const Descriptor* properties) {
  const Target target{handle, properties};
  const bool tensor_cores = allows_tensor_cores(problem);
  // Added up by cuDNN, results in bfloat16 would be rounded after each slice.
  const bool adds = problem.pass == Pass::kGradWeight && problem.dtype == DType::kFloat32;
  const int64_t batch = problem.x[0];
  const int64_t unit = aligned_images(problem);
  const int64_t units = ceil_div(batch, unit);
  const int64_t unit_elements =
      std::max(problem.x.elements(), problem.y.elements()) / batch * unit;
  const int64_t fewest =
      std::min(units, ceil_div(units, std::max<int64_t>(1, kMaxElements / unit_elements)));

  // By the number of images, and whether the result is added.
  std::map<std::pair<int64_t, bool>, Choice> choices;
  const auto choice_for = [&](int64_t images, bool add) -> const Choice& {
    const auto [found, is_new] = choices.try_emplace({images, add});
    if (is_new) {
      Convolution part = problem;
      part.x[0] = part.y[0] = images;
      found->second = choose(part, target, add ? 1 : 0);
    }
    return found->second;
  };

  constexpr int kFruitless = 3;  // tries to find what is not known to be there
  int fruitless = 0;
  int suggestions = 0;
  for (int64_t slices = fewest;;) {
    std::vector<Slice> made = cut(batch, unit, slices);
    EngineTraits traits;
    traits.tensor_cores = true;
    Bytes lacking{0};
    bool possible = true;
    for (Slice& slice : made) {
      const Choice& choice = choice_for(slice.images, adds && slice.first > 0);
      slice.plan = choice.plan;
      possible = possible && choice.plan;
      traits.tensor_cores = traits.tensor_cores && choice.traits.tensor_cores;
      traits.workspace = std::max(traits.workspace, choice.traits.workspace);
      if (!choice.traits.tensor_cores) lacking = std::max(lacking, choice.lacking);
      suggestions = std::max(suggestions, choice.suggestions);
    }
    const bool better = traits.tensor_cores || slices_.empty();
    if (possible && better) {
      slices_ = std::move(made);
      traits_ = traits;
      name_ = choice_for(slices_[0].images, false).name;
    }
    if (possible && (traits.tensor_cores || !tensor_cores)) break;
    if (!problem.algorithm.empty()) break;
    if (slices == units) break;
    // Workspaces are about proportional to the images.
    if (lacking > Bytes(0)) {
      slices = std::max(slices + 1, ceil_div(slices * lacking.count(), kWorkspaceCap.count()));
    } else if ((slices == 1 && possible) || ++fruitless > kFruitless) {
      break;  // cuDNN has no such engine for this convolution
    } else {
      slices *= 2;
    }
    slices = std::min(slices, units);
  }
  return suggestions;
}

ConvolutionPlan::ConvolutionPlan(const Convolution& given, cudnnHandle_t handle,
                                 const Descriptor* properties) {
  Convolution problem = given;
  const bool tensor_cores = allows_tensor_cores(problem);
  // Without tensor cores, the products take long and the bias takes little. Grouped
  // convolutions have engines of their own, which add no bias.
  const bool grouped = problem.w[problem.w.rank() - 1] != problem.x[problem.x.rank() - 1];
  if (problem.bias && tensor_cores && !grouped && problem.algorithm.empty()) {
    find_engines(problem, handle, properties);
    adds_bias_ = !slices_.empty() && traits_.tensor_cores;
  }
  if (!adds_bias_) {
    problem.bias = false;
    slices_.clear();
    const int suggestions = find_engines(problem, handle, properties);
    if (slices_.empty() && !problem.algorithm.empty()) {
      throw DeviceError("no plan '" + problem.algorithm + "' for the " + described(problem));
    }
    if (slices_.empty()) {
      throw DeviceError("no deterministic engine within " + format_bytes(kWorkspaceCap) +
                        " for the " + described(problem) + " among the " +
                        std::to_string(suggestions) + " suggested");
    }
  }
  x_image_ = image_of(problem.x, problem.dtype);
  y_image_ = image_of(problem.y, problem.dtype);
  const auto count = static_cast<int64_t>(slices_.size());
  if (count > 1) name_ += ", " + std::to_string(count) + " slices";
  if (problem.pass == Pass::kGradWeight && problem.dtype == DType::kBFloat16 && count > 1) {
    partials_ = count;
    const int64_t align = kByteAlignment / size_of(problem.dtype).count();
    partial_stride_ = ceil_div(problem.w.elements(), align) * align;
    w_step_ = size_of(problem.dtype) * partial_stride_;
  }
  log().debug("cuDNN: {}{}: {}{}, workspace {}", described(problem),
              adds_bias_ ? " with its bias" : "", name_,
              traits_.tensor_cores ? ", tensor cores" : "", format_bytes(traits_.workspace));
  if (tensor_cores && !traits_.tensor_cores && problem.algorithm.empty())
    warn_without_tensor_cores(described(problem), name_);
}

void ConvolutionPlan::run(cudnnHandle_t handle, void* x, void* w, void* y, void* workspace,
                          void* bias) const {
  constexpr std::array<int64_t, 4> kIds{kX, kW, kY, kBias};
  const size_t count = adds_bias_ ? 4 : 3;
  const auto at = [](void* start, Bytes offset) {
    return static_cast<std::byte*>(start) + offset.count();
  };
  int64_t i = 0;
  for (const Slice& slice : slices_) {
    const std::array<void*, 4> pointers{at(x, x_image_ * slice.first), at(w, w_step_ * i++),
                                        at(y, y_image_ * slice.first), bias};
    Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, std::span(kIds).first(count));
    pack.set_pointers(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, std::span(pointers).first(count));
    pack.set_pointers(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, {&workspace, 1});
    pack.finalize();
    count_launches(kLaunchesOfEngine);
    check(cudnnBackendExecute(handle, slice.plan->raw(), pack.raw()), "cudnnBackendExecute");
  }
}

}  // namespace tidemark::cudnn
