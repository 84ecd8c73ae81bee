// Updates of bfloat16 parameters, and Adam with 8-bit state, against the float32 rules and
// against the definitions in the papers.
#include "ops/optimizer/compact.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "ops/elementwise/compare.h"
#include "ops/optimizer/dynamic_map.h"
#include "ops/optimizer/optimizer.h"
#include "ops/registry/dispatch.h"
#include "ops/view/view.h"
#include "runtime/core/philox.h"
#include "tests/ops/optimizer/reference_updates.h"
#include "tests/support/values.h"

namespace tidemark::testing {
namespace {

using CompactTest = SessionTest;
using Rounded = std::vector<BFloat16>;
using Codes = std::vector<uint8_t>;

const std::vector<AdamOptions> kRules{
    {.lr = 1e-2},
    {.lr = 1e-2, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-6, .weight_decay = 0.01},
    {.lr = 1e-2, .weight_decay = 0.01, .decoupled = true}};
// The largest, which threads share, is tried with the first rule alone.
std::vector<size_t> counts(const AdamOptions& rule) {
  std::vector<size_t> counts{0, 1, 7, 255, 256, 257, 4096};
  if (rule.weight_decay == 0) counts.push_back(70001);
  return counts;
}

Rounded rounded(const Values& values) { return {values.begin(), values.end()}; }
Values widened(const Rounded& values) { return {values.begin(), values.end()}; }

Shape shape_of(size_t count) { return {static_cast<int64_t>(count)}; }

// A tensor of these values, if `shifted` one element into its storage.
template <class T>
Tensor placed(const std::vector<T>& values, bool shifted) {
  const Shape shape = shape_of(values.size());
  if (!shifted) return from(values, shape);
  std::vector<T> more(1);
  more.insert(more.end(), values.begin(), values.end());
  return narrow(from(more, shape_of(more.size())), 0, 1, shape[0]);
}

// Gradients that bfloat16 can hold, of different magnitudes; every eleventh is 0.
Values gradient(size_t count, int step) {
  Values values = random_values(static_cast<int64_t>(count), 100 + static_cast<uint32_t>(step));
  for (size_t i = 0; i < count; ++i) {
    values[i] = i % 11 == 3 ? 0.0F : std::ldexp(values[i], -static_cast<int>(i % 7));
  }
  return widened(rounded(values));
}
Tensor gradient_tensor(const Values& values, bool bfloat16, bool shifted = false) {
  return bfloat16 ? placed(rounded(values), shifted) : placed(values, shifted);
}

TEST_F(CompactTest, AMasterHasTheBitsOfAFloat32Parameter) {
  for (const AdamOptions& o : kRules) {
    for (const size_t count : counts(o)) {
      for (const bool bfloat16 : {true, false}) {
        SCOPED_TRACE(::testing::Message() << o.weight_decay << ' ' << count << bfloat16);
        const Rounded start = rounded(random_values(static_cast<int64_t>(count), 1));
        Values param = widened(start), m(count), v(count);
        // Whatever the master holds before the first step is ignored.
        const AdamUpdate update{.param = placed(start, false),
                                .grad = {},
                                .m = placed(m, false),
                                .v = placed(v, false),
                                .master = placed(Values(count, 9), false)};
        for (int step = 1; step <= 4; ++step) {
          AdamUpdate now = update;
          const Values grad = gradient(count, step);
          now.grad = gradient_tensor(grad, bfloat16);
          adam_step_({&now, 1}, o, step);
          reference_adam(param, grad, m, v, o, step);
          ASSERT_TRUE(same_bits(to_vector(update.master), param)) << step;
          ASSERT_TRUE(same_bits(to_vector<BFloat16>(update.param), rounded(param)));
        }
        EXPECT_TRUE(same_bits(to_vector(update.m), m));
        EXPECT_TRUE(same_bits(to_vector(update.v), v));
      }
    }
  }
}

TEST_F(CompactTest, SgdsMasterHasTheBitsOfAFloat32Parameter) {
  for (const SgdOptions& o : sgd_rules()) {
    for (const size_t count : {0, 1, 7, 257, 4096}) {
      for (const bool bfloat16 : {true, false}) {
        SCOPED_TRACE(::testing::Message()
                     << o.momentum << ' ' << o.dampening << ' ' << o.weight_decay << ' '
                     << o.nesterov << ' ' << count << bfloat16);
        const Rounded start = rounded(random_values(static_cast<int64_t>(count), 1));
        Values param = widened(start), buffer(count, 9);
        // Whatever the master and the buffer hold before the first step is ignored.
        SgdUpdate update{.param = placed(start, false),
                         .grad = {},
                         .momentum_buffer = {},
                         .master = placed(Values(count, 9), false)};
        if (o.momentum != 0) update.momentum_buffer = placed(buffer, false);
        for (int step = 0; step < 3; ++step) {
          const Values grad = gradient(count, step);
          update.grad = gradient_tensor(grad, bfloat16);
          sgd_step_({&update, 1}, o, step == 0);
          reference_sgd(param, grad, buffer, o, step == 0);
          ASSERT_TRUE(same_bits(to_vector(update.master), param)) << step;
          ASSERT_TRUE(same_bits(to_vector<BFloat16>(update.param), rounded(param)));
        }
        EXPECT_TRUE(o.momentum == 0 || same_bits(to_vector(update.momentum_buffer), buffer));
      }
    }
  }
}

// The copy of a master is rounded as a cast of it is, to nearest with ties to even: halfway
// between two neighbours, below and above, and where it overflows or is no number.
TEST_F(CompactTest, ParametersAreRoundedAsByACast) {
  Values values;
  for (const uint32_t bits : {0x3F808000U, 0x3F818000U, 0x3F807FFFU, 0x3F808001U, 0x00008000U,
                              0x00018000U, 0x7F7FFFFFU, 0x7F7F7FFFU, 0x7F800000U, 0x7FC00001U,
                              0x00000001U, 0x80008001U, 0xFF7F8000U}) {
    values.push_back(std::bit_cast<float>(bits));
  }
  const Tensor zeros = placed(Values(values.size()), false);
  const Tensor cast_of = cast(placed(values, false), DType::kBFloat16);
  const SgdUpdate sgd{.param = placed(Rounded(values.size()), false),
                      .grad = zeros,
                      .momentum_buffer = placed(Values(values.size()), false),
                      .master = placed(values, false)};
  const AdamUpdate adam{.param = placed(Rounded(values.size()), false),
                        .grad = zeros,
                        .m = placed(Values(values.size()), false),
                        .v = placed(Values(values.size()), false),
                        .master = placed(values, false)};
  sgd_step_({&sgd, 1}, {.lr = 0.1, .momentum = 0.9}, false);
  adam_step_({&adam, 1}, {}, 2);
  for (const Tensor& param : {sgd.param, adam.param}) {
    EXPECT_TRUE(same_bits(to_vector<BFloat16>(param), to_vector<BFloat16>(cast_of)));
  }
}

// Of sizes that fill blocks and that do not, more than one launch takes; aligned or not.
TEST_F(CompactTest, ManyAtOnceAreEachByItself) {
  const AdamOptions o{.lr = 0.01, .weight_decay = 0.01, .decoupled = true};
  const SgdOptions so{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01};
  for (const bool shifted : {false, true}) {
    std::vector<AdamUpdate> updates;
    std::vector<SgdUpdate> sgd;
    std::vector<Values> masters, grads, means, variances;
    for (uint32_t i = 0; i < 70; ++i) {
      const int64_t size = i == 33 ? 0 : i == 7 ? 5000 : 1 + 53 * i % 1031;
      masters.push_back(random_values(size, i));
      grads.push_back(gradient(static_cast<size_t>(size), static_cast<int>(i)));
      means.push_back(random_values(size, 100 + i));
      variances.push_back(random_values(size, 200 + i, 0));
      updates.push_back({.param = placed(Rounded(masters.back().size()), shifted),
                         .grad = gradient_tensor(grads.back(), i % 3 == 0, shifted),
                         .m = placed(means.back(), shifted),
                         .v = placed(variances.back(), shifted),
                         .master = placed(masters.back(), shifted)});
      sgd.push_back({.param = placed(Rounded(masters.back().size()), shifted),
                     .grad = updates.back().grad,
                     .momentum_buffer = placed(means.back(), shifted),
                     .master = placed(masters.back(), shifted)});
    }
    adam_step_(updates, o, 3);
    sgd_step_(sgd, so, false);
    for (size_t i = 0; i < updates.size(); ++i) {
      SCOPED_TRACE(i);
      Values master = masters[i], buffer = means[i];
      reference_sgd(master, grads[i], buffer, so, false);
      EXPECT_TRUE(same_bits(to_vector(sgd[i].master), master));
      EXPECT_TRUE(same_bits(to_vector<BFloat16>(sgd[i].param), rounded(master)));
      EXPECT_TRUE(same_bits(to_vector(sgd[i].momentum_buffer), buffer));
      EXPECT_EQ(sgd[i].param.storage()->version(), 1u);
      reference_adam(masters[i], grads[i], means[i], variances[i], o, 3);
      EXPECT_TRUE(same_bits(to_vector(updates[i].master), masters[i]));
      EXPECT_TRUE(same_bits(to_vector<BFloat16>(updates[i].param), rounded(masters[i])));
      EXPECT_TRUE(same_bits(to_vector(updates[i].m), means[i]));
      EXPECT_TRUE(same_bits(to_vector(updates[i].v), variances[i]));
      EXPECT_EQ(updates[i].param.storage()->version(), 1u);
      EXPECT_EQ(updates[i].grad.storage()->version(), 0u);
    }
  }
}

// Of all 2^16 random numbers, as many round up as the distance to the lower neighbour says.
TEST(StochasticRounding, IsExactInTheMean) {
  for (const float value : {1.0F, 1.003F, -1.003F, 3e-39F, -7.77e30F, 0.0F, 0.1F}) {
    const auto bits = std::bit_cast<uint32_t>(value);
    uint32_t up = 0;
    for (uint32_t random = 0; random < 1 << 16; ++random) {
      const uint32_t got = round_stochastically(value, random | 0xABCD0000).bits;
      ASSERT_LE(got - (bits >> 16), 1u);
      up += got - (bits >> 16);
    }
    EXPECT_EQ(up, bits & 0xFFFF) << value;
  }
  for (const uint32_t random : {0u, 0xFFFFu}) {
    EXPECT_TRUE(std::isnan(float{round_stochastically(std::nanf(""), random)}));
    EXPECT_TRUE(std::isnan(
        float{round_stochastically(std::bit_cast<float>(uint32_t{0xFFFFFFFF}), random)}));
    EXPECT_EQ(float{round_stochastically(-INFINITY, random)}, -INFINITY);
  }
}

TEST_F(CompactTest, RoundsByTheKeyTheStepAndTheElement) {
  constexpr uint64_t kKey = (uint64_t{1} << 52) + 12345;
  for (const AdamOptions& o : kRules) {
    for (const size_t count : counts(o)) {
      for (const bool shifted : {false, true}) {
        SCOPED_TRACE(::testing::Message() << o.weight_decay << ' ' << count << shifted);
        Rounded param = rounded(random_values(static_cast<int64_t>(count), 1));
        Values m(count), v(count);
        const AdamUpdate update{.param = placed(param, shifted),
                                .grad = {},
                                .m = placed(m, shifted),
                                .v = placed(v, shifted)};
        for (int step = 1; step <= 3; ++step) {
          AdamUpdate now = update;
          const Values grad = gradient(count, step);
          now.grad = gradient_tensor(grad, step != 2, shifted);
          adam_step_({&now, 1}, o, step, kKey);
          Values exact = widened(param);
          reference_adam(exact, grad, m, v, o, step);
          for (size_t i = 0; i < count; ++i) {
            const std::array<uint32_t, 4> words =
                philox4x32({static_cast<uint32_t>(i / 4), 0, static_cast<uint32_t>(step), 0},
                           philox_key(kKey));
            const uint32_t up = std::bit_cast<uint32_t>(exact[i]) + (words[i % 4] & 0xFFFF);
            param[i].bits = static_cast<uint16_t>(up >> 16);
          }
          ASSERT_TRUE(same_bits(to_vector<BFloat16>(update.param), param)) << step;
        }
        EXPECT_TRUE(same_bits(to_vector(update.m), m));
        EXPECT_TRUE(same_bits(to_vector(update.v), v));
      }
    }
  }
}

// Each update is an eighth of the distance to the next bfloat16, so rounding to nearest would
// lose them all.
TEST_F(CompactTest, SmallUpdatesAreNotLostInTheMean) {
  constexpr int64_t kCount = 40000;
  constexpr int kSteps = 8;
  const AdamOptions o{.lr = 0x1p-11, .eps = 0};
  AdamUpdate update{.param = placed(Rounded(kCount, 1.0F), false),
                    .grad = placed(Rounded(kCount, 1.0F), false),
                    .m = placed(Values(kCount), false),
                    .v = placed(Values(kCount), false)};
  for (int step = 1; step <= kSteps; ++step) adam_step_({&update, 1}, o, step, 5);
  double sum = 0;
  for (const float value : to_vector<BFloat16>(update.param)) sum += value;
  // An element's variance is at most (spacing / 2)^2 a step.
  const double deviation = 0x1p-9 * std::sqrt(kSteps / double{kCount});
  EXPECT_NEAR(sum / kCount, 1 - kSteps * o.lr, 4 * deviation);
}

// The map's values, ascending, from the definition: decades of bins, each by its middle.
std::vector<double> map_values(bool is_signed) {
  std::vector<double> values{0, 1};
  for (int exponent = -6; exponent <= 0; ++exponent) {
    const int bins = (is_signed ? 1 : 2) << (exponent + 6);
    for (int bin = 0; bin < bins; ++bin) {
      const double middle = 0.1 + 0.9 * (bin + 0.5) / bins;
      values.push_back(middle * std::pow(10, exponent));
      if (is_signed) values.push_back(-values.back());
    }
  }
  std::sort(values.begin(), values.end());
  return values;
}

template <bool kSigned>
void expect_map() {
  using Map = DynamicMap<kSigned>;
  const std::vector<double> values = map_values(kSigned);
  ASSERT_EQ(values.size(), 256u);
  for (int code = 0; code < 256; ++code) {
    const float value = Map::value(code);
    const double expected = values[static_cast<size_t>(code)];
    EXPECT_NEAR(value, expected, 3e-7 * std::abs(expected)) << code;
    EXPECT_EQ(Map::code(value), code);
  }
  EXPECT_EQ(Map::value(Map::code(0)), 0);
  EXPECT_EQ(Map::value(Map::code(1)), 1);
  // The nearest, near all limits between codes and elsewhere.
  std::vector<float> numbers = random_values(20000, 1, kSigned ? -1 : 0);
  for (float& x : numbers) x *= std::pow(10.0F, -7.5F * std::abs(numbers.front() - x));
  for (size_t code = 0; code + 1 < 256; ++code) {
    const double middle = (values[code] + values[code + 1]) / 2;
    for (const double near : {-1e-5, 1e-5}) {
      numbers.push_back(static_cast<float>(middle + near * std::abs(middle)));
    }
  }
  for (const float x : numbers) {
    const double distance = std::abs(values[static_cast<size_t>(Map::code(x))] - double{x});
    double least = 2;
    for (const double value : values) least = std::min(least, std::abs(value - double{x}));
    if (!kSigned && x > 0 && double{x} < values[1]) {
      EXPECT_EQ(Map::code(x), 1) << "a positive number does not become 0";
      continue;
    }
    EXPECT_LE(distance, least + 1e-6 * std::abs(x)) << x;
    // Half a bin of its decade, at most 4.5 of its tenth part if it is signed and small.
    EXPECT_LE(distance, std::max(double{std::abs(x)} * 4.5, 3e-7)) << x;
    if (std::abs(x) > 0.1F) {
      EXPECT_LE(distance, (kSigned ? 0.45 / 64 : 0.45 / 128) + 1e-7) << x;
    }
  }
  for (const float x : {NAN, -NAN, INFINITY, -INFINITY, 7.0F, -7.0F}) {
    EXPECT_GE(Map::code(x), 0);
    EXPECT_LE(Map::code(x), 255);
  }
}

TEST(DynamicMap, SignedValuesAreThePapers) { expect_map<true>(); }
TEST(DynamicMap, UnsignedValuesAreThePapers) { expect_map<false>(); }

// Values of 8-bit state by the definition.
Values dequantised(const Codes& codes, const Values& scales, bool is_signed) {
  const std::vector<double> map = map_values(is_signed);
  Values values;
  for (size_t i = 0; i < codes.size(); ++i) {
    values.push_back(static_cast<float>(map[codes[i]]) * scales[i / 256]);
  }
  return values;
}

// Expects state to be `exact` quantised.
void expect_quantised(const Codes& codes, const Values& scales, const Values& exact,
                      bool is_signed) {
  const std::vector<double> map = map_values(is_signed);
  for (size_t begin = 0; begin < exact.size(); begin += 256) {
    const size_t end = std::min(begin + 256, exact.size());
    float largest = 0;
    for (size_t i = begin; i < end; ++i) largest = std::max(largest, std::abs(exact[i]));
    ASSERT_NEAR(scales[begin / 256], largest, 1e-6F * largest);
    for (size_t i = begin; i < end; ++i) {
      if (largest == 0) {
        ASSERT_EQ(codes[i], is_signed ? 127 : 0);
        continue;
      }
      const double x = double{exact[i]} / double{largest};
      double least = 2;
      for (const double value : map) least = std::min(least, std::abs(value - x));
      if (!is_signed && x > 0 && x < map[1]) {
        ASSERT_EQ(codes[i], 1);
      } else {
        ASSERT_LE(std::abs(map[codes[i]] - x), least + 1e-6) << i << ' ' << x;
      }
    }
  }
}

enum class Kept { kFloat32, kMaster, kStochastic };

TEST_F(CompactTest, EightBitStateIsTheRuleBetweenRoundings) {
  for (const Kept kept : {Kept::kFloat32, Kept::kMaster, Kept::kStochastic}) {
    for (const AdamOptions& o : kRules) {
      for (const size_t count : counts(o)) {
        const bool shifted = count == 257;
        SCOPED_TRACE(::testing::Message()
                     << static_cast<int>(kept) << ' ' << o.weight_decay << ' ' << count);
        const Rounded start = rounded(random_values(static_cast<int64_t>(count), 1));
        const size_t blocks = (count + 255) / 256;
        const bool is_float = kept == Kept::kFloat32;
        AdamUpdate update{
            .param = is_float ? placed(widened(start), shifted) : placed(start, shifted),
            .grad = {},
            .m = placed(Codes(count), shifted),
            .v = placed(Codes(count), shifted),
            .m_scale = placed(Values(blocks), false),
            .v_scale = placed(Values(blocks), false)};
        if (kept == Kept::kMaster) update.master = placed(Values(count, 9), shifted);
        Values param = widened(start);
        for (int step = 1; step <= 4; ++step) {
          Values m = dequantised(to_vector<uint8_t>(update.m), to_vector(update.m_scale), true);
          Values v =
              dequantised(to_vector<uint8_t>(update.v), to_vector(update.v_scale), false);
          if (kept == Kept::kStochastic) {
            param = widened(to_vector<BFloat16>(update.param));
          }
          AdamUpdate now = update;
          const Values grad = gradient(count, step);
          now.grad = gradient_tensor(grad, step % 2 == 0 && !is_float, shifted);
          adam_step_({&now, 1}, o, step, 77);
          reference_adam(param, grad, m, v, o, step);
          expect_quantised(to_vector<uint8_t>(update.m), to_vector(update.m_scale), m, true);
          expect_quantised(to_vector<uint8_t>(update.v), to_vector(update.v_scale), v, false);
          if (is_float) {
            expect_close(update.param, param, 1e-6);
          } else if (kept == Kept::kMaster) {
            expect_close(update.master, param, 1e-6);
            EXPECT_TRUE(same_bits(to_vector<BFloat16>(update.param),
                                  rounded(to_vector(update.master))));
          } else {
            const Values got = widened(to_vector<BFloat16>(update.param));
            for (size_t i = 0; i < count; ++i) {
              ASSERT_NEAR(got[i], param[i], 0x1p-7 * std::abs(param[i]) + 1e-6);
            }
          }
          // The next step begins with what the device has.
          if (is_float) param = to_vector(update.param);
          if (kept == Kept::kMaster) param = to_vector(update.master);
        }
      }
    }
  }
}

TEST_F(CompactTest, MatchingUpdatesOf8BitStateGoTogether) {
  std::vector<AdamUpdate> together, alone;
  for (uint32_t i = 0; i < 40; ++i) {
    const size_t size = 1 + 97 * i;
    for (std::vector<AdamUpdate>* list : {&together, &alone}) {
      const Rounded start = rounded(random_values(static_cast<int64_t>(size), i));
      list->push_back({.param = placed(start, false),
                       .grad = gradient_tensor(gradient(size, 1), i % 2 == 0),
                       .m = placed(Codes(size, static_cast<uint8_t>(i)), false),
                       .v = placed(Codes(size, static_cast<uint8_t>(3 * i)), false),
                       .m_scale = placed(Values((size + 255) / 256, 0.5F), false),
                       .v_scale = placed(Values((size + 255) / 256, 0.25F), false),
                       .master = placed(Values(size, 1), false)});
    }
  }
  adam_step_(together, {.lr = 0.1}, 2);
  for (const AdamUpdate& one : alone) adam_step_({&one, 1}, {.lr = 0.1}, 2);
  for (size_t i = 0; i < alone.size(); ++i) {
    EXPECT_TRUE(same_bits(to_vector(together[i].master), to_vector(alone[i].master)));
    EXPECT_TRUE(same_bits(to_vector<uint8_t>(together[i].m), to_vector<uint8_t>(alone[i].m)));
    EXPECT_TRUE(same_bits(to_vector<uint8_t>(together[i].v), to_vector<uint8_t>(alone[i].v)));
    EXPECT_TRUE(same_bits(to_vector(together[i].v_scale), to_vector(alone[i].v_scale)));
  }
}

TEST_F(CompactTest, NaNSpreadsToItsBlockAlone) {
  Values grad(600, 1);
  grad[300] = NAN;
  const AdamUpdate update{.param = placed(Values(600), false),
                          .grad = placed(grad, false),
                          .m = placed(Codes(600), false),
                          .v = placed(Codes(600), false),
                          .m_scale = placed(Values(3), false),
                          .v_scale = placed(Values(3), false)};
  for (int step = 1; step <= 2; ++step) adam_step_({&update, 1}, {.lr = 0.1}, step);
  const Values param = to_vector(update.param);
  for (size_t i = 0; i < 600; ++i) EXPECT_EQ(std::isnan(param[i]), i >= 256 && i < 512) << i;
}

TEST_F(CompactTest, Errors) {
  const Tensor p = from(Rounded(300), {300}), f = from(Values(300), {300});
  const Tensor codes = from(Codes(300), {300}), scales = from(Values(2), {2});
  const auto error = [](const AdamUpdate& update) {
    return usage_error([&] { adam_step_({&update, 1}, {}, 1); });
  };
  EXPECT_EQ(error({.param = p, .grad = p, .m = f, .v = f}), "");
  EXPECT_EQ(error({.param = f, .grad = p, .m = f, .v = f}),
            "[adam_step_] input 1 of shape (300) is bfloat16, not float32");
  EXPECT_EQ(error({.param = p, .grad = p, .m = f, .v = codes}),
            "[adam_bfloat16_step_] input 3 of shape (300) is uint8, not float32");
  EXPECT_EQ(error({.param = p, .grad = p, .m = f, .v = f, .master = scales}),
            "[adam_master_step_] input 4 has shape (2), not (300)");
  EXPECT_EQ(error({.param = f, .grad = f, .m = f, .v = f, .master = f}),
            "[adam_master_step_] input 0 of shape (300) is float32, not bfloat16");
  EXPECT_EQ(error({.param = f, .grad = f, .m = codes, .v = codes, .m_scale = f, .v_scale = f}),
            "[adam_8bit_step_] input 4 has shape (300), not (2)");
  EXPECT_EQ(error({.param = p, .grad = p, .m = codes, .v = codes, .m_scale = scales}),
            "[adam_step_] 8-bit state needs scales of both m and v");
  const Tensor square = from(Rounded(100), {10, 10}), state = from(Values(100), {10, 10});
  EXPECT_EQ(error({.param = square, .grad = transpose(square, 0, 1), .m = state, .v = state}),
            "[adam_bfloat16_step_] parameters, gradients and state must be contiguous");
  const std::vector<AdamUpdate> two(2, {.param = p, .grad = p, .m = f, .v = f});
  EXPECT_EQ(
      usage_error([&] { adam_step_(two, {}, 1); }),
      "[adam_bfloat16_step_] parameters that are rounded at random are updated one by one");
  const std::vector<AdamUpdate> mixed{{.param = p, .grad = p, .m = f, .v = f, .master = f},
                                      {.param = f, .grad = f, .m = f, .v = f}};
  EXPECT_EQ(usage_error([&] { adam_step_(mixed, {}, 1); }),
            "[adam_step_] updates of a call must be of one kind");

  const auto sgd_error = [](const SgdUpdate& update, double momentum) {
    return usage_error([&] {
      sgd_step_({&update, 1}, {.lr = 1, .momentum = momentum}, false);
    });
  };
  EXPECT_EQ(sgd_error({p, p, {}}, 0),
            "[sgd_step_] input 0 of shape (300) is bfloat16, not float32");
  EXPECT_EQ(sgd_error({f, f, {}, f}, 0),
            "[sgd_master_step_] input 0 of shape (300) is float32, not bfloat16");
  EXPECT_EQ(sgd_error({p, p, scales, f}, 0.9),
            "[sgd_momentum_master_step_] input 2 has shape (2), not (300)");
  EXPECT_EQ(sgd_error({p, p, f, p}, 0.9),
            "[sgd_momentum_master_step_] input 3 of shape (300) is bfloat16, not float32");
  const std::vector<SgdUpdate> kinds{{p, p, {}, f}, {f, f, {}}};
  EXPECT_EQ(usage_error([&] { sgd_step_(kinds, {.lr = 1}, false); }),
            "[sgd_step_] updates of a call must be of one kind");
}

TEST_F(CompactTest, CostCountsWhatIsReadAndWritten) {
  const auto meta = [](DType dtype, int64_t n) { return TensorMeta::contiguous(dtype, {n}); };
  const TensorMeta p = meta(DType::kBFloat16, 512), f = meta(DType::kFloat32, 512),
                   u = meta(DType::kUInt8, 512), s = meta(DType::kFloat32, 2);
  const Attrs attrs;
  const auto bytes = [&](const OpDef& op, const std::vector<TensorMeta>& inputs) {
    return op.cost({inputs, {}, attrs}).bytes_moved;
  };
  EXPECT_EQ(bytes(kAdamBfloat16Step, {p, p, f, f}), Bytes(512 * (3 * 2 + 4 * 4)));
  EXPECT_EQ(bytes(kAdamMasterStep, {p, p, f, f, f}), Bytes(512 * (3 * 2 + 6 * 4)));
  EXPECT_EQ(bytes(kSgdMasterStep, {p, p, f}), Bytes(512 * (3 * 2 + 2 * 4)));
  EXPECT_EQ(bytes(kSgdMomentumMasterStep, {p, f, f, f}), Bytes(512 * (2 * 2 + 5 * 4)));
  EXPECT_EQ(bytes(kAdam8bitStep, {f, f, u, u, s, s}), Bytes(512 * (3 * 4 + 4) + 4 * 8));
  EXPECT_EQ(bytes(kAdam8bitMasterStep, {p, p, u, u, s, s, f}),
            Bytes(512 * (3 * 2 + 4 + 8) + 4 * 8));
}

// In bfloat16, clipped gradients are rounded to nearest.
TEST_F(CompactTest, ClipsBfloat16) {
  const Rounded values = rounded(random_values(70001, 1));
  std::vector<Tensor> grads{placed(values, false), placed(values, true)};
  clip_(grads, from<float>({4 - 1e-6F}, {}), 3);
  Rounded expected;
  for (const float value : values) expected.push_back(value * 0.75F);
  for (const Tensor& grad : grads) {
    EXPECT_TRUE(same_bits(to_vector<BFloat16>(grad), expected));
  }
}

}  // namespace
}  // namespace tidemark::testing
