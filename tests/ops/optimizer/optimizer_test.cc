#include "ops/optimizer/optimizer.h"

#include <cmath>
#include <optional>

#include "ops/reduce/reduce.h"
#include "ops/registry/dispatch.h"
#include "ops/view/view.h"
#include "runtime/session/call_listener.h"
#include "tests/ops/optimizer/reference_updates.h"
#include "tests/support/values.h"

namespace tidemark::testing {
namespace {

using OptimizerTest = SessionTest;

constexpr int kSteps = 5;

Values gradient_of_step(size_t count, int step) {
  return random_values(static_cast<int64_t>(count), 100 + static_cast<uint32_t>(step));
}

TEST_F(OptimizerTest, SgdIsTheReferenceToTheBit) {
  for (const SgdOptions& o : sgd_rules()) {
    for (const size_t count : {0, 1, 7, 70001}) {
      SCOPED_TRACE(::testing::Message() << o.momentum << ' ' << o.dampening << ' '
                                        << o.weight_decay << ' ' << o.nesterov << ' ' << count);
      const Shape shape{static_cast<int64_t>(count)};
      Values param = random_values(shape[0], 1), buffer(count, 0.5F);
      const Tensor p = from(param, shape);
      const Tensor b = o.momentum != 0 ? from(buffer, shape) : Tensor();
      for (int step = 0; step < kSteps; ++step) {
        SgdOptions now = o;
        now.lr = o.lr / (1 + step);
        const Values grad = gradient_of_step(count, step);
        sgd_step_(p, from(grad, shape), b, now, step == 0);
        reference_sgd(param, grad, buffer, now, step == 0);
      }
      EXPECT_TRUE(same_bits(to_vector(p), param));
      EXPECT_TRUE(!b.defined() || same_bits(to_vector(b), buffer));
    }
  }
}

TEST_F(OptimizerTest, AdamIsTheReferenceToTheBit) {
  for (const AdamOptions& o :
       std::vector<AdamOptions>{{.lr = 1e-3},
                                {.lr = 1e-2, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-6},
                                {.lr = 1e-3, .weight_decay = 0.01},
                                {.lr = 1e-3, .weight_decay = 0.01, .decoupled = true}}) {
    for (const size_t count : {0, 1, 7, 70001}) {
      SCOPED_TRACE(::testing::Message()
                   << o.weight_decay << ' ' << o.decoupled << ' ' << count);
      const Shape shape{static_cast<int64_t>(count)};
      Values param = random_values(shape[0], 1), m(count), v(count);
      const Tensor p = from(param, shape), pm = from(m, shape), pv = from(v, shape);
      for (int step = 1; step <= kSteps; ++step) {
        AdamOptions now = o;
        now.lr = o.lr / step;
        const Values grad = gradient_of_step(count, step);
        adam_step_(p, from(grad, shape), pm, pv, now, step);
        reference_adam(param, grad, m, v, now, step);
      }
      EXPECT_TRUE(same_bits(to_vector(p), param));
      EXPECT_TRUE(same_bits(to_vector(pm), m));
      EXPECT_TRUE(same_bits(to_vector(pv), v));
    }
  }
}

// Of sizes that fill packs and blocks and that do not, more than one launch takes.
TEST_F(OptimizerTest, ManyAtOnceAreEachByItself) {
  for (const bool shifted : {false, true}) {
    for (const bool strided : {false, true}) {
      SCOPED_TRACE(::testing::Message() << shifted << strided);
      std::vector<SgdUpdate> sgd;
      std::vector<AdamUpdate> adam;
      std::vector<Values> params, buffers, means, variances, grads;
      const SgdOptions o{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01};
      const AdamOptions a{.lr = 0.01, .weight_decay = 0.01};
      for (uint32_t i = 0; i < 70; ++i) {
        const int64_t size = i == 33 ? 0 : i == 7 ? 5000 : 1 + 53 * i % 1031;
        const auto make = [&](std::vector<Values>& values, uint32_t seed, float low) {
          values.push_back(random_values(size, seed * 100 + i, low));
          if (!shifted) return from(values.back(), {size});
          Values more{9};
          more.insert(more.end(), values.back().begin(), values.back().end());
          return narrow(from(more, {size + 1}), 0, 1, size);
        };
        const Tensor grad = [&] {
          if (!strided || i != 2) return make(grads, 1, -1);
          grads.emplace_back(static_cast<size_t>(size), 0.25F);
          return expand(from<float>({0.25F}, {1}), {size});
        }();
        sgd.push_back({make(params, 2, -1), grad, make(buffers, 3, -1)});
        adam.push_back(
            {from(params.back(), {size}), grad, make(means, 4, -1), make(variances, 5, 0)});
      }
      sgd_step_(sgd, o, false);
      adam_step_(adam, a, 3);
      for (size_t i = 0; i < sgd.size(); ++i) {
        SCOPED_TRACE(i);
        Values param = params[i];
        reference_sgd(param, grads[i], buffers[i], o, false);
        EXPECT_TRUE(same_bits(to_vector(sgd[i].param), param));
        EXPECT_TRUE(same_bits(to_vector(sgd[i].momentum_buffer), buffers[i]));
        reference_adam(params[i], grads[i], means[i], variances[i], a, 3);
        EXPECT_TRUE(same_bits(to_vector(adam[i].param), params[i]));
        EXPECT_TRUE(same_bits(to_vector(adam[i].m), means[i]));
        EXPECT_TRUE(same_bits(to_vector(adam[i].v), variances[i]));
        EXPECT_EQ(sgd[i].param.storage()->version(), 1u);
        EXPECT_EQ(sgd[i].grad.storage()->version(), 0u);
      }
    }
  }
}

TEST_F(OptimizerTest, ExpandedGradients) {
  // d(sum)/d(param) is an expanded view.
  Tensor param = random_leaf({3, 4}, 1);
  Values expected = to_vector(param), buffer(12);
  const Tensor b = from(buffer, {3, 4});
  backward(sum(param));
  const SgdOptions o{.lr = 0.5, .momentum = 0.9};
  {
    const NoGrad no_grad;
    sgd_step_(param, grad_of(param), b, o, true);
  }
  reference_sgd(expected, Values(12, 1), buffer, o, true);
  EXPECT_TRUE(same_bits(to_vector(param), expected));
}

TEST_F(OptimizerTest, Errors) {
  const Tensor a = random_tensor({3}, 1), b = random_tensor({4}, 1);
  EXPECT_EQ(usage_error([&] { sgd_step_(a, b, {}, {.lr = 1}, true); }),
            "[sgd_step_] a parameter of shape (3) with a gradient or state of shape (4)");
  EXPECT_THROW(sgd_step_(a, a, b, {.lr = 1}, true), UsageError);
  EXPECT_THROW(sgd_step_(a, a, {}, {.lr = 1, .momentum = 0.9}, true), UsageError);
  EXPECT_THROW(sgd_step_(a, a, {}, {.lr = 1, .nesterov = true}, true), UsageError);
  EXPECT_THROW(adam_step_(a, a, a, b, {}, 1), UsageError);
  EXPECT_THROW(adam_step_(a, a, a, a, {}, 0), UsageError);
  EXPECT_EQ(usage_error([&] {
              dispatch(kAdamStep, {a, a, a});
            }),
            "[adam_step_] 3 inputs, not 4 for each parameter");
  EXPECT_EQ(usage_error([&] { sgd_step_(std::span<const SgdUpdate>(), {.lr = 1}, true); }),
            "[sgd_step_] 0 inputs, not 2 for each parameter");
  const std::vector<SgdUpdate> mixed{{a, a, {}}, {b, a, {}}};
  EXPECT_EQ(usage_error([&] { sgd_step_(mixed, {.lr = 1}, true); }),
            "[sgd_step_] a parameter of shape (4) with a gradient or state of shape (3)");
  const Tensor leaf = random_leaf({3}, 1);
  EXPECT_THROW(sgd_step_(leaf, a, {}, {.lr = 1}, true), UsageError);
}

TEST_F(OptimizerTest, CostCountsWhatIsReadAndWritten) {
  const std::vector<TensorMeta> inputs(4, TensorMeta::contiguous(DType::kFloat32, {100}));
  const Attrs attrs;
  EXPECT_EQ(kAdamStep.cost({inputs, {}, attrs}).bytes_moved, Bytes(7 * 400));
  EXPECT_EQ(kAdamStep.cost({inputs, {}, attrs}).flops, 16 * 100);
  EXPECT_EQ(kSgdStep.cost({std::span(inputs).first(2), {}, attrs}).bytes_moved, Bytes(3 * 400));
  // Two parameters.
  EXPECT_EQ(kSgdStep.cost({inputs, {}, attrs}).bytes_moved, Bytes(2 * 3 * 400));
  EXPECT_EQ(kSgdStep.cost({inputs, {}, attrs}).flops, 2 * 4 * 100);
}

TEST_F(OptimizerTest, ClipScalesDownToTheLimitAndNeverUp) {
  const Values values = random_values(70001, 1);
  for (const float norm : {0.5F, 2.0F, 8.0F}) {
    SCOPED_TRACE(norm);
    const Tensor grad = from(values, {70001});
    clip_({&grad, 1}, from<float>({norm}, {}), 2);
    const double factor = std::min(1.0, 2 / (norm + 1e-6));
    std::vector<double> expected;
    for (float value : values) expected.push_back(value * factor);
    expect_close(grad, expected, 2e-7);
    if (norm < 2) {
      EXPECT_TRUE(same_bits(to_vector(grad), values));
    }
  }
}

// One operator, on a GPU one launch for every 32; none is scaled twice, none left out.
TEST_F(OptimizerTest, ManyAreClippedAtOnce) {
  std::vector<Tensor> grads;
  std::vector<Values> expected;
  for (int64_t i = 0; i < 70; ++i) {
    const int64_t size = i % 10 == 0 ? 3000 * i : i;
    expected.push_back(random_values(size, static_cast<uint32_t>(i)));
    grads.push_back(from(expected.back(), {size}));
    for (float& value : expected.back()) value *= 0.5F;
  }
  int calls = 0;
  std::optional<CallListener> listener(std::in_place, session_,
                                       [&](const Recipe&) { ++calls; });
  clip_(grads, from<float>({4 - 1e-6F}, {}), 2);
  listener.reset();
  EXPECT_EQ(calls, 1);
  for (size_t i = 0; i < grads.size(); ++i) {
    EXPECT_TRUE(same_bits(to_vector(grads[i]), expected[i])) << i;
  }
}

TEST_F(OptimizerTest, ClipRefusesWhatItCannotScale) {
  const Tensor one = from<float>({1}, {}), grad = random_tensor({4, 2}, 1);
  EXPECT_EQ(usage_error([&] {
              const Tensor view = transpose(grad, 0, 1);
              clip_({&view, 1}, one, 1);
            }),
            "[clip_] the gradient must be contiguous");
  EXPECT_EQ(usage_error([&] {
              clip_({&grad, 1}, grad, 1);
            }),
            "[clip_] a norm must have one element, not shape (4, 2)");
  EXPECT_NE(usage_error([&] { clip_({&grad, 1}, one, -1); }), "");
}

}  // namespace
}  // namespace tidemark::testing
