// Optimizers with bfloat16 parameters, and Adam with 8-bit state.
#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/checkpoint/weights.h"
#include "models/nn/parameter_init.h"
#include "models/optim/clip.h"
#include "models/optim/optimizer.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/elementwise.h"
#include "ops/linear/matmul.h"
#include "ops/reduce/reduce.h"
#include "ops/view/contiguous.h"
#include "ops/view/view.h"
#include "runtime/session/call_listener.h"
#include "tests/support/values.h"

namespace tidemark::testing {
namespace {

const AdamOptions kAdamw{.lr = 0.01, .weight_decay = 0.1, .decoupled = true};
const AdamStorage kStorages[] = {
    {},
    {.masters = false, .seed = 3},
    {.eight_bit = true},
    {.masters = false, .eight_bit = true, .seed = 3},
};

const SgdOptions kSgd{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01};

using Make = std::function<std::unique_ptr<Optimizer>(const std::vector<NamedTensor>&)>;

// Every way to keep bfloat16 parameters.
std::vector<Make> all_ways() {
  std::vector<Make> ways;
  for (const AdamStorage& storage : kStorages) {
    ways.push_back([&storage](const auto& of) { return make_adam(of, kAdamw, storage); });
  }
  ways.push_back([](const auto& of) { return make_sgd(of, kSgd); });
  ways.push_back([](const auto& of) { return make_sgd(of, {.lr = 0.1}); });
  return ways;
}

class CompactOptimizerTest : public SessionTest {
 protected:
  // Parameters of these sizes, most of them bfloat16, with values of their own.
  static std::vector<NamedTensor> parameters(std::span<const int64_t> sizes) {
    ParameterInit init(5);
    std::vector<NamedTensor> made;
    for (const int64_t size : sizes) {
      init.store_as(made.size() % 5 == 4 ? DType::kFloat32 : DType::kBFloat16);
      made.push_back({"p" + std::to_string(made.size()), init.normal({size}, 1)});
      require_grad(made.back().tensor);
    }
    return made;
  }
  // Sets gradients of the parameters' own types, which depend on the step.
  static void make_gradients(const std::vector<NamedTensor>& parameters, int step) {
    for (size_t i = 0; i < parameters.size(); ++i) {
      const Tensor& p = parameters[i].tensor;
      const NoGrad no_grad;
      const Tensor gradient = random_tensor(
          p.shape(), static_cast<uint32_t>(100 * step) + static_cast<uint32_t>(i));
      set_grad(p, p.dtype() == DType::kBFloat16 ? cast(gradient, p.dtype()) : gradient);
    }
  }
  static std::vector<std::vector<std::byte>> bytes_of(
      std::initializer_list<std::span<const NamedTensor>> lists) {
    std::vector<std::vector<std::byte>> all;
    for (const auto& list : lists) {
      for (const NamedTensor& one : list) {
        all.emplace_back(static_cast<size_t>(one.tensor.meta().bytes().count()));
        Session::current().download(one.tensor, all.back().data());
      }
    }
    return all;
  }
};

TEST_F(CompactOptimizerTest, StateHasTheBytesThatItsNamesSay) {
  const int64_t sizes[] = {4095, 4096, 5000, 10, 7000};  // the last is float32
  const std::vector<NamedTensor> of = parameters(sizes);
  const auto names = [&](const AdamStorage& storage) {
    std::vector<std::string> described;
    const auto adam = make_adam(of, kAdamw, storage);
    for (const NamedTensor& state : adam->state()) {
      EXPECT_EQ(state.tensor.storage()->category, Category::kOptimizerState);
      described.push_back(state.name + " " +
                          std::to_string(state.tensor.meta().bytes().count()));
      for (const auto& bytes : bytes_of({{&state, 1}})) {
        EXPECT_EQ(std::set<std::byte>(bytes.begin(), bytes.end()), std::set{std::byte{0}});
      }
    }
    return described;
  };
  EXPECT_THAT(names({}), ::testing::ElementsAre(
                             "p0.mean 16380", "p0.variance 16380", "p0.master 16380",  //
                             "p1.mean 16384", "p1.variance 16384", "p1.master 16384",  //
                             "p2.mean 20000", "p2.variance 20000", "p2.master 20000",  //
                             "p3.mean 40", "p3.variance 40", "p3.master 40",           //
                             "p4.mean 28000", "p4.variance 28000"));
  EXPECT_THAT(names({.masters = false, .eight_bit = true}),
              ::testing::ElementsAre("p0.mean 16380", "p0.variance 16380",  //
                                     "p1.mean 4096", "p1.variance 4096", "p1.mean_scale 64",
                                     "p1.variance_scale 64",  //
                                     "p2.mean 5000", "p2.variance 5000", "p2.mean_scale 80",
                                     "p2.variance_scale 80",          //
                                     "p3.mean 40", "p3.variance 40",  //
                                     "p4.mean 7000", "p4.variance 7000", "p4.mean_scale 112",
                                     "p4.variance_scale 112"));
  const auto all = make_adam(of, kAdamw, {.eight_bit = true});
  EXPECT_EQ(all->state()[7].name, "p1.master");
  EXPECT_EQ(all->state()[7].tensor.meta().bytes(), Bytes(4 * 4096));
}

// Weights are loaded after the optimizer is made.
TEST_F(CompactOptimizerTest, NamedParametersKeepStateInFloat32) {
  const std::unique_ptr<Optimizer> adam =
      make_adam(parameters(std::vector<int64_t>{5000, 5000}), kAdamw,
                {.eight_bit = true, .in_float32 = {"p1"}});
  for (const NamedTensor& state : adam->state()) {
    if (!state.name.ends_with(".mean")) continue;
    EXPECT_EQ(state.tensor.dtype(), state.name == "p1.mean" ? DType::kFloat32 : DType::kUInt8);
  }
}

TEST_F(CompactOptimizerTest, MastersFollowAFloat32ParameterFromTheLoadedValues) {
  for (const Make& make : {all_ways().front(), all_ways()[4], all_ways()[5]}) {
    Tensor narrow = cast(random_tensor({3000}, 1), DType::kBFloat16);
    Tensor wide = random_tensor({3000}, 2);
    for (Tensor* each : {&narrow, &wide}) require_grad(*each);
    const auto with_master = make({{"w", narrow}}), plain = make({{"w", wide}});
    std::vector<BFloat16> loaded;
    for (const float value : random_values(3000, 3)) loaded.push_back(value);
    const std::vector<float> same(loaded.begin(), loaded.end());
    assign_values(narrow, std::as_bytes(std::span(loaded)));
    assign_values(wide, std::as_bytes(std::span(same)));
    ASSERT_EQ(with_master->state().back().name, "w.master");
    for (int step = 0; step < 4; ++step) {
      const NoGrad no_grad;
      const Tensor gradient =
          cast(random_tensor({3000}, static_cast<uint32_t>(10 + step)), DType::kBFloat16);
      set_grad(narrow, gradient);
      set_grad(wide, cast(gradient, DType::kFloat32));
      with_master->step();
      plain->step();
      EXPECT_TRUE(same_bits(to_vector(with_master->state().back().tensor), to_vector(wide)));
      // What a network that computes in bfloat16 casts a float32 parameter to.
      EXPECT_TRUE(same_bits(to_vector<BFloat16>(narrow),
                            to_vector<BFloat16>(cast(wide, DType::kBFloat16))));
    }
  }
}

TEST_F(CompactOptimizerTest, GroupsChangeNothing) {
  const int64_t sizes[] = {70000, 10, 5000, 4096, 300, 1, 6000,
                           4097,  12, 9000, 77,   64,  2, 8000};
  const std::vector<Make> ways = all_ways();
  for (size_t way = 0; way < ways.size(); ++way) {
    std::vector<std::vector<std::vector<std::byte>>> results;
    std::vector<size_t> operators;
    for (const UpdateGroups& groups : {UpdateGroups{}, {.most_of_parameter = Bytes(0)}}) {
      const std::vector<NamedTensor> of = parameters(sizes);
      const auto optimizer = ways[way](of);
      optimizer->set_groups(groups);
      size_t calls = 0;
      for (int step = 0; step < 3; ++step) {
        make_gradients(of, step);
        const CallListener listener(session_, [&](const Recipe&) { ++calls; });
        optimizer->step();
      }
      EXPECT_EQ(optimizer->update_counts(), std::vector<int64_t>(std::size(sizes), 3));
      results.push_back(bytes_of({of, optimizer->state()}));
      operators.push_back(calls);
    }
    EXPECT_EQ(results[0], results[1]);
    EXPECT_EQ(operators[1], 3 * std::size(sizes));
    // Without masters, only the two float32 parameters can share an operator, if of one kind.
    EXPECT_EQ(operators[0] < operators[1], way != 3);
  }
}

TEST_F(CompactOptimizerTest, RandomRoundingDependsOnSeedParameterAndUpdate) {
  const auto run = [&](uint64_t seed, int64_t updates_before, size_t position) {
    const int64_t sizes[] = {500, 500, 500};
    const std::vector<NamedTensor> of = parameters(sizes);
    const auto adam = make_adam(of, {.lr = 1e-4}, {.masters = false, .seed = seed});
    adam->set_update_counts(std::vector<int64_t>(3, updates_before));
    const std::vector<BFloat16> ones(500, 1.0F);
    const Tensor& p = of[position].tensor;
    assign_values(p, std::as_bytes(std::span(ones)));
    const NoGrad no_grad;
    set_grad(p, cast(upload_constant({500}, 1, Category::kData, "ones"), DType::kBFloat16));
    adam->step();
    return bytes_of({{&of[position], 1}});
  };
  const auto first = run(1, 0, 0);
  EXPECT_EQ(run(1, 0, 0), first);
  EXPECT_NE(run(2, 0, 0), first);
  EXPECT_NE(run(uint64_t{1} << 40 | 1, 0, 0), first);
  EXPECT_NE(run(1, 0, 1), first);
  EXPECT_NE(run(1, 7, 0), run(1, 8, 0));
}

// Where an update ends and another begins does not matter, in the tensors that a checkpoint
// has.
TEST_F(CompactOptimizerTest, ContinuesFromItsStateWithTheSameBits) {
  const int64_t sizes[] = {5000, 100, 4096, 300, 6000};
  for (const Make& make : all_ways()) {
    const std::vector<NamedTensor> whole = parameters(sizes);
    const auto uninterrupted = make(whole);
    std::vector<std::vector<std::byte>> middle;
    for (int step = 0; step < 4; ++step) {
      if (step == 2) middle = bytes_of({whole, uninterrupted->state()});
      make_gradients(whole, step);
      uninterrupted->step();
    }
    const std::vector<NamedTensor> again = parameters(sizes);
    const auto resumed = make(again);
    size_t at = 0;
    for (const auto& list :
         {std::span<const NamedTensor>(again), std::span(resumed->state())}) {
      for (const NamedTensor& one : list) assign_values(one.tensor, middle[at++]);
    }
    resumed->set_update_counts(std::vector<int64_t>(std::size(sizes), 2));
    for (int step = 2; step < 4; ++step) {
      make_gradients(again, step);
      resumed->step();
    }
    EXPECT_EQ(bytes_of({again, resumed->state()}), bytes_of({whole, uninterrupted->state()}));
  }
}

// Least squares for a matrix of 64 x 64, which all variants find as float32 does.
TEST_F(CompactOptimizerTest, ARegressionConvergesAsInFloat32) {
  constexpr int64_t kRows = 128, kSide = 64;
  constexpr int kSteps = 150;
  SessionOptions single = options();
  single.threads = 1;
  const Session session(single);
  const Tensor x = random_tensor({kRows, kSide}, 1), target = random_tensor({kSide, kSide}, 2);
  const Tensor y = matmul(x, target);
  const auto loss_after = [&](DType dtype, const AdamStorage& storage) {
    ParameterInit init(1);
    init.store_as(dtype);
    Tensor w = init.normal({kSide, kSide}, 0.01);
    require_grad(w);
    const auto adam = make_adam({{"w", w}}, {.lr = 0.05}, storage);
    Tensor loss;
    for (int step = 0; step < kSteps; ++step) {
      adam->set_learning_rate(0.05 * (kSteps - step) / kSteps);
      const Tensor difference = matmul(x, cast(w, DType::kFloat32)) - y;
      loss = mean(mul(difference, difference));
      backward(loss);
      adam->step();
    }
    return to_vector(loss)[0];
  };
  const float exact = loss_after(DType::kFloat32, {});
  EXPECT_LT(exact, 1e-3);
  EXPECT_LT(loss_after(DType::kFloat32, {.eight_bit = true}), 2e-3);
  // A product of 64 terms, each off by up to 2^-9 of a weight below 1.
  constexpr double kNoise = 64.0 / 3 * 0x1p-18;
  EXPECT_LT(loss_after(DType::kBFloat16, {}), exact + kNoise);
  EXPECT_LT(loss_after(DType::kBFloat16, {.masters = false}), exact + 8 * kNoise);
  EXPECT_LT(loss_after(DType::kBFloat16, {.eight_bit = true}), 2e-3);
  EXPECT_LT(loss_after(DType::kBFloat16, {.masters = false, .eight_bit = true}), 2e-3);
}

TEST_F(CompactOptimizerTest, GradientsWithGapsAreCopied) {
  const NoGrad no_grad;
  const Tensor gradient = transpose(cast(random_tensor({60, 70}, 2), DType::kBFloat16), 0, 1);
  for (const Make& make : all_ways()) {
    std::vector<std::vector<std::vector<std::byte>>> results;
    for (const Tensor& each : {gradient, contiguous(gradient)}) {
      Tensor w = cast(random_tensor({70, 60}, 1), DType::kBFloat16);
      require_grad(w);
      const NamedTensor named{"w", w};
      const auto optimizer = make({named});
      set_grad(w, each);
      optimizer->step();
      results.push_back(bytes_of({{&named, 1}, optimizer->state()}));
    }
    EXPECT_EQ(results[0], results[1]);
  }
}

TEST_F(CompactOptimizerTest, GradientsOfBothTypesAreClippedTogether) {
  const int64_t sizes[] = {40000, 10, 300, 20000, 16384, 1, 7000, 5, 12000, 9000};
  const std::vector<NamedTensor> of = parameters(sizes);
  make_gradients(of, 1);
  double squares = 0;
  std::vector<std::vector<float>> before;
  const auto gradient = [&](size_t i) { return cast(grad_of(of[i].tensor), DType::kFloat32); };
  for (size_t i = 0; i < of.size(); ++i) {
    before.push_back(to_vector(gradient(i)));
    for (const float g : before.back()) squares += double{g} * double{g};
  }
  const double norm = to_vector(clip_grad_norm_(of, 2))[0];
  EXPECT_NEAR(norm, std::sqrt(squares), 1e-6 * norm);
  for (size_t i = 0; i < of.size(); ++i) {
    EXPECT_EQ(grad_of(of[i].tensor).dtype(), of[i].tensor.dtype());
    const std::vector<float> after = to_vector(gradient(i));
    const double rounding = of[i].tensor.dtype() == DType::kBFloat16 ? 0x1p-8 : 1e-6;
    for (size_t k = 0; k < after.size(); ++k) {
      const double expected = before[i][k] * 2 / norm;
      ASSERT_NEAR(after[k], expected, (rounding + 1e-6) * std::abs(expected));
    }
  }
}

TEST_F(CompactOptimizerTest, UnfusedAdamIsForFloat32) {
  const int64_t sizes[] = {3};
  const std::vector<NamedTensor> of = parameters(sizes);
  EXPECT_EQ(usage_error([&] { make_unfused_adam(of, {}); }),
            "[adam] the parameter p0 is bfloat16, not float32");
}

}  // namespace
}  // namespace tidemark::testing
