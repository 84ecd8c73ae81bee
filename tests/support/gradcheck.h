// Checks gradients against finite differences, through the public functions.
//
//   check_gradients([](std::vector<Tensor> x) { return mul(x[0], x[1]); }, {{2, 3}, {3}});
//
// The function's output y is projected on random weights r: the derivative of sum r y in each
// input element must equal the result of backward(y, r). Sums are in float64 and values in
// float32, so steps are large and tolerances loose.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "tests/support/values.h"

namespace tidemark::testing {

struct GradCheckOptions {
  float low = -1, high = 1;  // inputs are drawn from this range ...
  float gap = 0;             // ... with magnitudes at least this, to keep away from a kink at 0
  float step = 1e-2F;
  double tolerance = 5e-3;  // of the largest derivative of that input, or of 1
  size_t elements = 64;     // at most this many of each input are checked
  uint32_t seed = 1;
};

namespace detail {

inline std::vector<float> draw_input(int64_t count, uint32_t seed, const GradCheckOptions& o) {
  std::vector<float> values = random_values(count, seed, o.low, o.high);
  for (float& value : values) {
    if (std::abs(value) < o.gap) value += value < 0 ? -o.gap : o.gap;
  }
  return values;
}

inline double project(const Tensor& y, const std::vector<float>& weights) {
  const std::vector<float> values = to_vector(y);
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i) sum += double{values[i]} * weights[i];
  return sum;
}

}  // namespace detail

// `function` must return the same values for the same inputs, and one float32 output. Inputs
// are float32 leaves of the given shapes.
inline void check_gradients(const std::function<Tensor(std::vector<Tensor>)>& function,
                            const std::vector<Shape>& shapes,
                            const GradCheckOptions& options = {}) {
  std::vector<std::vector<float>> values;
  std::vector<Tensor> leaves;
  for (size_t i = 0; i < shapes.size(); ++i) {
    values.push_back(detail::draw_input(shapes[i].elements(),
                                        options.seed + static_cast<uint32_t>(i), options));
    leaves.push_back(from(values[i], shapes[i]));
    require_grad(leaves[i]);
  }
  const Tensor y = function(leaves);
  const std::vector<float> weights = random_values(y.elements(), options.seed + 100);
  backward(y, from(weights, y.shape()));

  const NoGrad no_grad;
  for (size_t i = 0; i < shapes.size(); ++i) {
    ASSERT_TRUE(grad_of(leaves[i]).defined()) << "input " << i << " has no gradient";
    ASSERT_EQ(grad_of(leaves[i]).shape(), shapes[i]) << "input " << i;
    const std::vector<float> gradient = to_vector(grad_of(leaves[i]));
    const size_t stride = std::max<size_t>(1, gradient.size() / options.elements);
    std::vector<double> expected;
    double largest = 1;
    for (size_t element = 0; element < gradient.size(); element += stride) {
      float& value = values[i][element];
      const float before = value;
      const auto at = [&](float moved) {
        value = moved;
        std::vector<Tensor> inputs;
        for (size_t k = 0; k < shapes.size(); ++k) inputs.push_back(from(values[k], shapes[k]));
        return detail::project(function(inputs), weights);
      };
      const float above = before + options.step, below = before - options.step;
      expected.push_back((at(above) - at(below)) / (double{above} - double{below}));
      value = before;
      largest = std::max(largest, std::abs(expected.back()));
    }
    for (size_t k = 0; k < expected.size(); ++k) {
      ASSERT_NEAR(gradient[k * stride], expected[k], options.tolerance * largest)
          << "input " << i << " of shape " << shapes[i].to_string() << ", element "
          << k * stride;
    }
  }
}

}  // namespace tidemark::testing
