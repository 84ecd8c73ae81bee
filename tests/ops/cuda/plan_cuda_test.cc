// The choice of cuDNN's engines for GPUs that need not be there: their properties are enough.
#include <gtest/gtest.h>

#include <spdlog/sinks/ostream_sink.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "ops/cudnn/convolution.h"
#include "ops/cudnn/gpu_properties.h"
#include "runtime/core/errors.h"
#include "runtime/core/log.h"

// Calls of cuDNN pass through these (the linker's --wrap).
namespace {
// Called before an attribute is set; false: it is not set.
std::function<bool(cudnnBackendDescriptor_t, cudnnBackendAttributeName_t, const void*)> on_set;
cudnnStatus_t next_finalize = CUDNN_STATUS_SUCCESS;  // a failure of the next call
}  // namespace

extern "C" {
cudnnStatus_t __real_cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor);
cudnnStatus_t __wrap_cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  const cudnnStatus_t failure = std::exchange(next_finalize, CUDNN_STATUS_SUCCESS);
  return failure != CUDNN_STATUS_SUCCESS ? failure : __real_cudnnBackendFinalize(descriptor);
}
// Nothing is executed: there may be no GPU.
cudnnStatus_t __wrap_cudnnBackendExecute(cudnnHandle_t, cudnnBackendDescriptor_t,
                                         cudnnBackendDescriptor_t) {
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t __real_cudnnBackendSetAttribute(cudnnBackendDescriptor_t,
                                              cudnnBackendAttributeName_t,
                                              cudnnBackendAttributeType_t, int64_t,
                                              const void*);
cudnnStatus_t __wrap_cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                              cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t type, int64_t count,
                                              const void* values) {
  if (on_set && !on_set(descriptor, name, values)) return CUDNN_STATUS_SUCCESS;
  return __real_cudnnBackendSetAttribute(descriptor, name, type, count, values);
}
}

namespace tidemark::cudnn {
namespace {

struct Layer {
  int64_t size, inputs, outputs, window, stride;
};
const std::vector<Layer> kResNet50{
    {224, 3, 64, 7, 2},    {56, 64, 64, 1, 1},   {56, 64, 64, 3, 1},   {56, 64, 256, 1, 1},
    {56, 256, 64, 1, 1},   {56, 256, 128, 1, 1}, {56, 128, 128, 3, 2}, {28, 128, 512, 1, 1},
    {56, 256, 512, 1, 2},  {28, 512, 256, 1, 1}, {28, 256, 256, 3, 2}, {14, 256, 1024, 1, 1},
    {14, 1024, 512, 1, 1}, {14, 512, 512, 3, 2}, {7, 512, 2048, 1, 1}, {7, 512, 512, 3, 1}};

Convolution convolution(Pass pass, const Layer& layer, int64_t batch, bool tf32) {
  const int64_t padding = layer.window / 2;
  const int64_t size = (layer.size + 2 * padding - layer.window) / layer.stride + 1;
  return {pass,
          {batch, layer.size, layer.size, layer.inputs},
          {layer.outputs, layer.window, layer.window, layer.inputs},
          {batch, size, size, layer.outputs},
          {layer.stride, layer.stride},
          {padding, padding},
          {1, 1},
          tf32,
          DType::kFloat32};
}

constexpr Pass kPasses[] = {Pass::kForward, Pass::kGradInput, Pass::kGradWeight};

// A convolution without its pass and types.
struct Problem {
  Shape x, w, y;
  std::vector<int64_t> stride, padding, dilation;
};

void expect_plan(Pass pass, const Problem& p, bool tf32, DType dtype,
                 const Descriptor& device) {
  Convolution problem{pass, p.x, p.w, p.y, p.stride, p.padding, p.dilation, tf32, dtype};
  EXPECT_NO_THROW(ConvolutionPlan(problem, device));
  if (pass != Pass::kForward) return;
  problem.bias = true;
  EXPECT_NO_THROW(ConvolutionPlan(problem, device));
}

// The first test: a process warns once.
TEST(PlanWarningTest, WithoutTensorCoresOneWarningSaysSo) {
  std::ostringstream text;
  log().sinks().push_back(std::make_shared<spdlog::sinks::ostream_sink_mt>(text));
  const Descriptor device = properties(kA100);
  const auto plan = [&](bool tf32) {  // depthwise
    const Shape x{16, 112, 112, 32};
    const std::vector<int64_t> ones{1, 1};
    return ConvolutionPlan({Pass::kForward, x, {32, 3, 3, 1}, x, ones, ones, ones, tf32},
                           device);
  };
  ASSERT_FALSE(plan(false).traits().tensor_cores);
  EXPECT_EQ(text.str(), "") << "they were not allowed";
  ASSERT_FALSE(plan(true).traits().tensor_cores) << plan(true).name();
  plan(true);
  log().sinks().pop_back();
  const std::string warning = text.str();
  EXPECT_NE(warning.find("without tensor cores"), std::string::npos) << warning;
  EXPECT_EQ(std::count(warning.begin(), warning.end(), '\n'), 1) << warning;
}

TEST(PlanTest, EnginesAreTakenThatRepeatToTheBitWithinTheCap) {
  EXPECT_TRUE(acceptable({.tensor_cores = true, .workspace = kWorkspaceCap}, true));
  EXPECT_TRUE(acceptable({}, false));
  EXPECT_FALSE(acceptable({.tensor_cores = true}, false));
  EXPECT_FALSE(acceptable({.deterministic = false}, true));
  EXPECT_FALSE(acceptable({.down_converts = true}, true));
  EXPECT_FALSE(acceptable({.rounds_sums = true}, true));
  EXPECT_FALSE(acceptable({.transforms = true}, true));
  EXPECT_FALSE(acceptable({.compiles = true}, true));
  EXPECT_FALSE(acceptable({.workspace = kWorkspaceCap + Bytes(1)}, true));
}

TEST(PlanTest, OtherPlansAreMadeByTheirNamesWhateverTheirWorkspace) {
  const Descriptor device = properties(kA100);
  const Bytes cap = kWorkspaceCap;
  Bytes largest{0};
  for (const Layer& layer : {Layer{56, 64, 64, 3, 1}, Layer{28, 128, 512, 1, 1}}) {
    for (const Pass pass : kPasses) {
      Convolution problem = convolution(pass, layer, 1024, false);
      const ConvolutionPlan usual(problem, device);
      const std::vector<std::string> others = other_plans(problem, device);
      EXPECT_FALSE(others.empty());
      EXPECT_EQ(std::count(others.begin(), others.end(), usual.name()), 0);
      for (const std::string& name : others) {
        problem.algorithm = name;
        const ConvolutionPlan plan(problem, device);
        EXPECT_EQ(plan.name(), name);
        EXPECT_EQ(plan.slices().size(), 1U);
        EXPECT_TRUE(acceptable_by_name(plan.traits(), false));
        largest = std::max(largest, plan.workspace());
      }
    }
  }
  EXPECT_GT(largest, cap);
}

TEST(PlanTest, AnUnknownNameIsAnError) {
  Convolution problem = convolution(Pass::kForward, {56, 64, 64, 3, 1}, 8, true);
  problem.algorithm = "engine 9999, rank 0";
  EXPECT_THROW(ConvolutionPlan(problem, properties(kA100)), DeviceError);
}

TEST(PlanTest, EveryConvolutionOfResNet50HasAPlanThatIsAlwaysTheSame) {
  for (const Gpu* each : {&kA100, &kH100}) {
    const Gpu& gpu = *each;
    const Descriptor device = properties(gpu), again = properties(gpu);
    for (const int64_t batch : {1, 32, 257, 3001}) {
      for (const Layer& layer : kResNet50) {
        for (const Pass pass : kPasses) {
          for (const bool tf32 : {true, false}) {
            if (!tf32 && batch > 32) continue;
            const Convolution problem = convolution(pass, layer, batch, tf32);
            SCOPED_TRACE(std::string(gpu.name) + ", x " + problem.x.to_string() + ", w " +
                         problem.w.to_string() + ", tf32 " + std::to_string(tf32));
            const ConvolutionPlan plan(problem, device);
            EXPECT_TRUE(acceptable(plan.traits(), tf32));
            // For single images cuDNN at times thinks better of other engines.
            if (tf32 && batch > 1) {
              EXPECT_TRUE(plan.traits().tensor_cores) << plan.name();
            }
            const ConvolutionPlan same(problem, again);
            EXPECT_EQ(plan.name(), same.name());
            EXPECT_EQ(plan.workspace(), same.workspace());
          }
        }
      }
    }
  }
}

std::vector<int64_t> slices_of(const ConvolutionPlan& plan) {
  std::vector<int64_t> images;
  for (const ConvolutionPlan::Slice& slice : plan.slices()) images.push_back(slice.images);
  return images;
}

// A100's engines copy their inputs: at once, these would take 784 and 982 MiB.
TEST(PlanTest, LargeBatchesAreCutIntoSlices) {
  const Descriptor device = properties(kA100);
  const Layer strided{56, 256, 512, 1, 2}, pointwise{56, 64, 256, 1, 1};
  const auto slices = [&](Pass pass, const Layer& layer, int64_t batch, bool tf32) {
    const ConvolutionPlan plan(convolution(pass, layer, batch, tf32), device);
    EXPECT_EQ(plan.traits().tensor_cores, tf32) << plan.name();
    EXPECT_EQ(plan.partials(), 1);
    return slices_of(plan);
  };
  using Images = std::vector<int64_t>;
  for (const Pass pass : {Pass::kForward, Pass::kGradWeight}) {
    const Layer& layer = pass == Pass::kForward ? strided : pointwise;
    EXPECT_EQ(slices(pass, layer, 32, true), Images{32});
    EXPECT_EQ(slices(pass, layer, 256, true), Images({64, 64, 64, 64}));
    EXPECT_EQ(slices(pass, layer, 251, true), Images({63, 63, 63, 62}));
    EXPECT_EQ(slices(pass, layer, 257, true), Images({65, 64, 64, 64}));
    EXPECT_EQ(slices(pass, layer, 256, false), Images{256}) << "nothing would be gained";
  }
}

// cuDNN names an engine without tensor cores before one with them: for A100, ResNeXt-50's
// grouped convolution and ResNet-50's last gradient of w.
TEST(PlanTest, TensorCoresComeFirst) {
  const Descriptor device = properties(kA100);
  const std::vector<int64_t> none{0, 0}, ones{1, 1};
  for (const int64_t batch : {257, 384, 512, 4093}) {
    const Shape x{batch, 56, 56, 128};
    const ConvolutionPlan plan({Pass::kForward, x, {128, 3, 3, 4}, x, ones, ones, ones},
                               device);
    EXPECT_TRUE(plan.traits().tensor_cores) << plan.name();
  }
  for (const int64_t batch : {3, 15, 31, 33, 40, 48, 63}) {
    const ConvolutionPlan plan({Pass::kGradWeight,
                                {batch, 7, 7, 2048},
                                {512, 1, 1, 2048},
                                {batch, 7, 7, 512},
                                ones,
                                none,
                                ones},
                               device);
    EXPECT_TRUE(plan.traits().tensor_cores) << plan.name();
    EXPECT_EQ(plan.slices().size(), 1u) << batch;
  }
}

// U-Net's workspace is more than proportional: down to single images, slices are tried.
TEST(PlanTest, ABatchIsCutIntoSingleImages) {
  const Descriptor device = properties(kA100);
  const std::vector<int64_t> ones{1, 1};
  for (const int64_t batch : {1, 4, 7, 31}) {
    const ConvolutionPlan plan({Pass::kGradWeight,
                                {batch, 416, 608, 128},
                                {64, 3, 3, 128},
                                {batch, 416, 608, 64},
                                ones,
                                ones,
                                ones},
                               device);
    EXPECT_TRUE(plan.traits().tensor_cores) << plan.name();
  }
}

// Pieces that have an engine say nothing about how far to cut.
TEST(PlanTest, OneTooLargePieceDoesNotCutTheRest) {
  const std::vector<int64_t> ones{1, 1};
  const Descriptor device = properties(kH100);
  const ConvolutionPlan plan({Pass::kGradWeight,
                              {2048, 416, 608, 3},
                              {64, 3, 3, 3},
                              {2048, 416, 608, 64},
                              ones,
                              ones,
                              ones},
                             device);
  EXPECT_TRUE(plan.traits().tensor_cores) << plan.name();
  EXPECT_LE(plan.slices().size(), 64u) << plan.name();
}

// Every fourth image of 3 * 1001 * 1001 floats starts at a multiple of 16 bytes.
TEST(PlanTest, SlicesCoverTheBatchAndStartAtMultiplesOf16Bytes) {
  for (const Gpu* gpu : {&kA100, &kH100}) {
    const Descriptor device = properties(*gpu);
    for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
      const int64_t channels = 3, size = 1001, batch = 1531;
      Convolution problem = convolution(Pass::kForward, {size, channels, 8, 3, 1}, batch, true);
      problem.dtype = dtype;
      const ConvolutionPlan plan(problem, device);
      int64_t first = 0;
      EXPECT_GT(plan.slices().size(), 1u);
      for (const ConvolutionPlan::Slice& slice : plan.slices()) {
        EXPECT_EQ(slice.first, first);
        EXPECT_GT(slice.images, 0);
        first += slice.images;
        for (const Shape* shape : {&problem.x, &problem.y}) {
          const int64_t image = shape->elements() / batch;
          EXPECT_EQ(slice.first * image * size_of(dtype).count() % 16, 0);
          EXPECT_LT(slice.images * image, int64_t{1} << 31);
        }
      }
      EXPECT_EQ(first, batch);
    }
  }
}

TEST(PlanTest, EachSliceIsGivenItsPartOfXAndYAndOfPartialGradients) {
  const Descriptor device = properties(kA100);
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    Convolution problem = convolution(Pass::kGradWeight, kResNet50[0], 509, true);
    problem.dtype = dtype;
    const ConvolutionPlan plan(problem, device);
    ASSERT_GT(plan.slices().size(), 1u);
    std::vector<std::byte*> given;  // x, w and y of each slice
    on_set = [&](cudnnBackendDescriptor_t, cudnnBackendAttributeName_t name,
                 const void* values) {
      if (name == CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS) {
        const auto* const pointers = static_cast<std::byte* const*>(values);
        given.insert(given.end(), pointers, pointers + 3);
      }
      return true;
    };
    const auto at = [](int64_t address) { return reinterpret_cast<std::byte*>(address); };
    constexpr int64_t kX = int64_t{1} << 40, kW = int64_t{1} << 41, kY = int64_t{1} << 42;
    plan.run(nullptr, at(kX), at(kW), at(kY), at(int64_t{1} << 43));
    on_set = nullptr;
    std::vector<std::byte*> expected;
    const int64_t size = size_of(dtype).count();
    int64_t number = 0;
    for (const ConvolutionPlan::Slice& slice : plan.slices()) {
      expected.push_back(at(kX + slice.first * 224 * 224 * 3 * size));
      expected.push_back(at(kW + (plan.partials() > 1 ? number++ * 64 * 7 * 7 * 3 * size : 0)));
      expected.push_back(at(kY + slice.first * 112 * 112 * 64 * size));
    }
    EXPECT_EQ(given, expected);
  }
}

// VGG-16's convolutions.
const std::vector<Layer> kVgg16{
    {224, 3, 64, 3, 1},    {224, 64, 64, 3, 1},  {112, 64, 128, 3, 1},
    {112, 128, 128, 3, 1}, {56, 128, 256, 3, 1}, {56, 256, 256, 3, 1},
    {28, 256, 512, 3, 1},  {28, 512, 512, 3, 1}, {14, 512, 512, 3, 1}};

TEST(PlanTest, ABiasIsAddedByTheSamePlanWithoutMoreSlices) {
  for (const Gpu* gpu : {&kA100, &kH100}) {
    const Descriptor device = properties(*gpu);
    for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
      for (const int64_t batch : {8, 32, 64, 257}) {
        for (const Layer& layer : kVgg16) {
          Convolution problem = convolution(Pass::kForward, layer, batch, true);
          problem.dtype = dtype;
          SCOPED_TRACE(std::string(gpu->name) + " " + std::string(to_string(dtype)) + " x " +
                       problem.x.to_string());
          const ConvolutionPlan plain(problem, device);
          problem.bias = true;
          const ConvolutionPlan plan(problem, device);
          EXPECT_FALSE(plain.adds_bias());
          EXPECT_TRUE(plan.adds_bias());
          EXPECT_TRUE(plan.traits().tensor_cores) << plan.name();
          EXPECT_TRUE(acceptable(plan.traits(), true));
          EXPECT_EQ(plan.slices().size(), plain.slices().size());
          EXPECT_EQ(plan.name(), ConvolutionPlan(problem, device).name());
        }
      }
    }
  }
}

TEST(PlanTest, ABiasIsLeftToTheCallerWithGroupsWithoutTensorCoresAndForANamedPlan) {
  const Descriptor device = properties(kH100);
  const auto expect_left = [&](Convolution problem) {
    const ConvolutionPlan plain(problem, device);
    problem.bias = true;
    const ConvolutionPlan plan(problem, device);
    EXPECT_FALSE(plan.adds_bias()) << plan.name();
    EXPECT_EQ(plan.name(), plain.name());
    EXPECT_EQ(plan.workspace(), plain.workspace());
  };
  Convolution problem = convolution(Pass::kForward, kVgg16[2], 32, false);
  expect_left(problem);
  problem.algorithm = other_plans(problem, device).at(0);
  expect_left(problem);
  const std::vector<int64_t> ones{1, 1};
  for (const int64_t channels : {1, 4}) {  // of a group
    const Shape x{2, 8, 8, 32};
    expect_left({Pass::kForward, x, {32, 3, 3, channels}, x, ones, ones, ones});
  }
}

// An older cuDNN may not know a convolution and an addition as one graph.
TEST(PlanTest, ABiasIsLeftToTheCallerWhereCudnnRefusesItsGraph) {
  const Descriptor device = properties(kH100);
  Convolution problem = convolution(Pass::kForward, kVgg16[2], 32, true);
  const ConvolutionPlan plain(problem, device);
  problem.bias = true;
  ASSERT_TRUE(ConvolutionPlan(problem, device).adds_bias());
  for (const auto refused :
       {CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_ATTR_OPERATION_POINTWISE_YDESC,
        CUDNN_ATTR_OPERATIONGRAPH_OPS}) {
    SCOPED_TRACE(refused);
    cudnnStatus_t status = CUDNN_STATUS_NOT_SUPPORTED;
    bool adds = false;  // whether the graph that is being made adds a bias
    on_set = [&](cudnnBackendDescriptor_t, cudnnBackendAttributeName_t name, const void*) {
      adds = adds || name == CUDNN_ATTR_POINTWISE_MATH_PREC;
      if (adds && name == refused) {
        next_finalize = status;
        adds = false;
      }
      return true;
    };
    {
      const ConvolutionPlan plan(problem, device);
      EXPECT_FALSE(plan.adds_bias()) << plan.name();
      EXPECT_EQ(plan.name(), plain.name());
      EXPECT_EQ(plan.workspace(), plain.workspace());
    }
    status = CUDNN_STATUS_INTERNAL_ERROR;  // no answer about what is supported
    EXPECT_THROW(ConvolutionPlan(problem, device), DeviceError);
    on_set = nullptr;
  }
}

// The product is virtual, and the bias is added to it in float32 before y is rounded.
TEST(PlanTest, EachSliceIsGivenTheWholeBias) {
  const Descriptor device = properties(kA100);
  Convolution problem = convolution(Pass::kForward, kVgg16[1], 32, true);
  problem.bias = true;
  std::vector<bool> is_virtual;
  std::vector<std::byte*> given;
  on_set = [&](cudnnBackendDescriptor_t, cudnnBackendAttributeName_t name, const void* values) {
    if (name == CUDNN_ATTR_TENSOR_IS_VIRTUAL) {
      is_virtual.push_back(*static_cast<const bool*>(values));
    }
    if (name == CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS) {
      given.push_back(static_cast<std::byte* const*>(values)[3]);
    }
    return true;
  };
  const ConvolutionPlan plan(problem, device);
  EXPECT_TRUE(plan.adds_bias());
  EXPECT_GT(plan.slices().size(), 1u);
  EXPECT_EQ(std::count(is_virtual.begin(), is_virtual.end(), true) * 5,
            static_cast<int64_t>(is_virtual.size()));
  std::byte some[1];
  plan.run(nullptr, some, some, some, some, some + 1);
  on_set = nullptr;
  EXPECT_EQ(given, std::vector<std::byte*>(plan.slices().size(), some + 1));
}

TEST(PlanTest, NoSliceHas2To31Elements) {
  const Layer layer{112, 64, 64, 3, 1};  // 2675 images are 2^31 elements
  for (const Gpu* gpu : {&kA100, &kH100}) {
    const Descriptor device = properties(*gpu);
    for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
      for (const bool tf32 : {true, false}) {
        for (const Pass pass : kPasses) {
          Convolution problem = convolution(pass, layer, 4093, tf32);
          problem.dtype = dtype;
          const ConvolutionPlan plan(problem, device);
          EXPECT_EQ(plan.traits().tensor_cores, tf32 || dtype == DType::kBFloat16)
              << plan.name();
          for (const int64_t images : slices_of(plan)) EXPECT_LE(images, 2674);
          // Only the sum of rounded results is not cuDNN's.
          const auto count = static_cast<int64_t>(plan.slices().size());
          EXPECT_GT(count, 1);
          const bool rounds = pass == Pass::kGradWeight && dtype == DType::kBFloat16;
          EXPECT_EQ(plan.partials(), rounds ? count : 1);
          if (rounds) {
            EXPECT_GE(plan.partial_stride(), problem.w.elements());
            EXPECT_EQ(plan.partial_stride() % 8, 0);
          }
        }
      }
    }
  }
}

const Problem kTwoGroups{{2, 6, 5, 4}, {6, 3, 3, 2}, {2, 6, 5, 6}, {1, 1}, {2, 1}, {2, 1}};
const Problem kDepthwise{{2, 8, 8, 32}, {32, 3, 3, 1}, {2, 8, 8, 32}, {1, 1}, {1, 1}, {1, 1}};
const Problem kUnequal{{2, 5, 6, 3}, {4, 3, 2, 3}, {2, 2, 5, 4}, {2, 1}, {0, 0}, {1, 1}};
const Problem kOdd{{2, 5, 5, 5}, {7, 3, 3, 5}, {2, 3, 3, 7}, {1, 1}, {0, 0}, {1, 1}};

TEST(PlanTest, GroupsStridesAndDilationsHavePlans) {
  const Descriptor device = properties(kH100);
  for (const Pass pass : kPasses) {
    for (const bool tf32 : {true, false}) {
      for (const Problem& problem : {kTwoGroups, kDepthwise, kUnequal, kOdd}) {
        expect_plan(pass, problem, tf32, DType::kFloat32, device);
      }
    }
  }
}

TEST(PlanTest, ClipsHavePlans) {
  // The first layer of a ResNet for clips, one in the middle, and one that halves their size.
  const Shape frames{8, 16, 112, 112, 3}, half{8, 16, 56, 56, 64};
  const Problem first{frames, {64, 3, 7, 7, 3}, half, {1, 2, 2}, {1, 3, 3}, {1, 1, 1}};
  const Problem middle{half, {64, 3, 3, 3, 64}, half, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}};
  const Problem halving{{2, 16, 56, 56, 64}, {128, 1, 1, 1, 64}, {2, 8, 28, 28, 128},
                        {2, 2, 2},           {0, 0, 0},          {1, 1, 1}};
  const Descriptor device = properties(kH100);
  for (const Pass pass : kPasses) {
    for (const auto& [tf32, dtype] :
         {std::pair(true, DType::kFloat32), std::pair(false, DType::kFloat32),
          std::pair(false, DType::kBFloat16)}) {
      for (const Problem& layer : {first, middle, halving}) {
        expect_plan(pass, layer, tf32, dtype, device);
      }
    }
  }
}

TEST(PlanTest, ConvolutionsOfBfloat16RunOnTensorCores) {
  const Descriptor device = properties(kH100);
  for (const int64_t batch : {1, 32}) {
    for (const Layer& layer : kResNet50) {
      for (const Pass pass : kPasses) {
        // Whatever float32 may be rounded to.
        Convolution problem = convolution(pass, layer, batch, /*tf32=*/false);
        problem.dtype = DType::kBFloat16;
        SCOPED_TRACE("x " + problem.x.to_string() + ", w " + problem.w.to_string());
        const ConvolutionPlan plan(problem, device);
        EXPECT_TRUE(acceptable(plan.traits(), true));
        if (layer.inputs > 3 && batch == 32) {
          EXPECT_TRUE(plan.traits().tensor_cores);
        }
      }
    }
  }
  for (const Pass pass : kPasses) {
    for (const Problem& problem : {kTwoGroups, kDepthwise, kOdd}) {
      expect_plan(pass, problem, /*tf32=*/false, DType::kBFloat16, device);
    }
  }
}

TEST(PlanTest, OnlyWhatCudnnDoesNotSupportIsPassedOver) {
  const Descriptor device = properties(kH100);
  const Convolution problem = convolution(Pass::kForward, kResNet50[1], 32, true);
  const std::string best = ConvolutionPlan(problem, device).name();
  for (const auto failing :
       {CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_ATTR_ENGINEHEUR_MODE}) {
    for (const auto status :
         {CUDNN_STATUS_NOT_SUPPORTED, CUDNN_STATUS_NOT_SUPPORTED_SHARED_MEMORY_INSUFFICIENT,
          CUDNN_STATUS_NOT_INITIALIZED, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED,
          CUDNN_STATUS_EXECUTION_FAILED_CUDART}) {
      int failures = 0;
      on_set = [&](cudnnBackendDescriptor_t, cudnnBackendAttributeName_t name, const void*) {
        if (name == failing && failures++ == 0) next_finalize = status;
        return true;
      };
      std::string chosen, error;
      try {
        chosen = ConvolutionPlan(problem, device).name();
      } catch (const DeviceError& thrown) {
        error = thrown.what();
      }
      on_set = nullptr;
      if (CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED) {
        EXPECT_EQ(error, "");
        EXPECT_NE(chosen, best);
      } else {
        EXPECT_NE(error.find("cudnnBackendFinalize"), std::string::npos)
            << cudnnGetErrorString(status) << ": " << chosen;
      }
    }
  }
}

// On a GPU, plans belong to its handle: NVIDIA documents device properties only for plans that
// are serialised.
TEST(PlanTest, WithAHandleNothingIsMadeFromDeviceProperties) {
  const Descriptor device = properties(kH100);
  const Convolution problem = convolution(Pass::kForward, kResNet50[1], 32, true);
  int gpu = 0;
  const auto handle = reinterpret_cast<cudnnHandle_t>(&gpu);
  int graphs = 0, plans = 0;
  // Without a GPU there is no handle: where one is set, the test sets properties.
  const cudnnBackendDescriptor_t raw = device.raw();
  const auto set_properties = [&](cudnnBackendDescriptor_t of,
                                  cudnnBackendAttributeName_t name) {
    __real_cudnnBackendSetAttribute(of, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw);
  };
  on_set = [&](cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name,
               const void* values) {
    switch (name) {
      case CUDNN_ATTR_OPERATIONGRAPH_HANDLE:
      case CUDNN_ATTR_EXECUTION_PLAN_HANDLE: {
        EXPECT_EQ(*static_cast<const cudnnHandle_t*>(values), handle);
        if (name == CUDNN_ATTR_OPERATIONGRAPH_HANDLE) {
          ++graphs;
        } else {
          ++plans;
          set_properties(of, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
        }
        return false;
      }
      case CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH:
        set_properties(of, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP);
        return true;
      case CUDNN_ATTR_ENGINEHEUR_DEVICEPROP:
      case CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP:
        ADD_FAILURE() << "device properties are set";
        return true;
      default: return true;
    }
  };
  const std::string chosen = ConvolutionPlan(problem, handle).name();
  on_set = nullptr;
  EXPECT_EQ(chosen, ConvolutionPlan(problem, device).name());
  EXPECT_GT(graphs, 0);
  EXPECT_GT(plans, 0);
}

TEST(PlanTest, WhatCannotBePlannedIsRefusedWithItsShapes) {
  // y is not what this convolution gives.
  Convolution wrong = convolution(Pass::kForward, kResNet50[1], 2, true);
  wrong.y = {2, 9, 9, 64};
  try {
    const ConvolutionPlan plan(wrong, properties(kH100));
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("cudnn"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace tidemark::cudnn
