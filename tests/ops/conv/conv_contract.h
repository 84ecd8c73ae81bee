// What the kernels of a convolution over n spatial dimensions do, whatever n is.
#pragma once

#include <vector>

#include "ops/conv/conv.h"
#include "tests/support/run_kernel.h"

namespace tidemark::testing {

template <size_t n>
struct ConvCase {
  Shape x;
  Shape w;
  ConvAttrs<n> attrs;
};

// Visits every multiply-add: indices of the elements of x, w and y.
template <size_t n, class Visit>
void for_each_product(const ConvCase<n>& c, const Shape& y, Visit visit) {
  const int64_t cin = c.w[n + 1], kout = c.w[0] / c.attrs.groups;
  const int64_t positions = y.elements() / y[0] / y[n + 1],
                taps = c.w.elements() / c.w[0] / cin;
  for (int64_t place = 0; place < y[0] * positions * taps; ++place) {
    const int64_t image = place / (positions * taps);
    int64_t position = place / taps % positions, tap = place % taps;
    const int64_t at = image * positions + position, weight = tap;
    int64_t from = 0, step = 1;
    bool inside = true;
    for (size_t d = n; d >= 1; --d) {
      const int64_t in = position % y[d] * c.attrs.stride[d - 1] +
                         tap % c.w[d] * c.attrs.dilation[d - 1] - c.attrs.padding[d - 1];
      inside = inside && in >= 0 && in < c.x[d];
      from += in * step;
      step *= c.x[d];
      position /= y[d];
      tap /= c.w[d];
    }
    if (!inside) continue;
    for (int64_t k = 0; k < c.w[0]; ++k) {
      for (int64_t i = 0; i < cin; ++i) {
        visit(static_cast<size_t>((image * step + from) * c.x[n + 1] + k / kout * cin + i),
              static_cast<size_t>((k * taps + weight) * cin + i),
              static_cast<size_t>(at * c.w[0] + k));
      }
    }
  }
}

template <size_t n>
class ConvContract : public ::testing::TestWithParam<size_t> {
 protected:
  ConvContract(const ConvCase<n>& one, const OpDef& forward, const OpDef& grad_input,
               const OpDef& grad_weight)
      : c(one), forward_(forward), grad_input_(grad_input), grad_weight_(grad_weight) {
    for (size_t d = 0; d < n; ++d) {
      input_attrs_.extents[d] = c.x[d + 1];
      weight_attrs_.extents[d] = bias_attrs_.extents[d] = c.w[d + 1];
    }
    bias_attrs_.bias = 1;
  }

  void expect_forward_agrees_with_the_definition() const {
    const auto run = run_kernel(forward_, {x, w}, c.attrs);
    const auto biased = run_kernel(forward_, {x, w, bias}, c.attrs);
    std::vector<double> y(run[0].values.size());
    for_each_product(c, run[0].shape,
                     [&](size_t i, size_t j, size_t o) { y[o] += double{x[i]} * w[j]; });
    expect_near(run[0], y, 1e-5, "y");
    for (size_t i = 0; i < y.size(); ++i) y[i] += bias[i % bias.values.size()];
    expect_near(biased[0], y, 1e-5, "y with bias");
  }

  void expect_gradients_agree_with_the_definition() const {
    const Shape y_shape = run_kernel(forward_, {x, w}, c.attrs)[0].shape;
    const Array gy = Array::random(y_shape, 4);
    const auto gx = run_kernel(grad_input_, {gy, w}, input_attrs_);
    const auto gw = run_kernel(grad_weight_, {x, gy}, weight_attrs_);
    const auto gwb = run_kernel(grad_weight_, {x, gy}, bias_attrs_);
    std::vector<double> x_ref(x.values.size()), w_ref(w.values.size()),
        b_ref(bias.values.size());
    for_each_product(c, y_shape, [&](size_t i, size_t j, size_t o) {
      x_ref[i] += double{gy[o]} * w[j];
      w_ref[j] += double{gy[o]} * x[i];
    });
    for (size_t i = 0; i < gy.values.size(); ++i) b_ref[i % b_ref.size()] += gy[i];
    ASSERT_EQ(gx[0].shape, c.x);
    ASSERT_EQ(gw[0].shape, c.w);
    ASSERT_EQ(gwb[0].shape, c.w);
    expect_near(gx[0], x_ref, 1e-5, "gx");
    expect_near(gw[0], w_ref, 1e-5, "gw");
    expect_near(gwb[0], w_ref, 1e-5, "gw beside the bias");
    expect_near(gwb[1], b_ref, 1e-5, "gbias");
  }

  void expect_repeats_to_the_bit() const {
    const Array y = run_kernel(forward_, {x, w}, c.attrs)[0];
    const Array gy = Array::random(y.shape, 4);
    const Array gx = run_kernel(grad_input_, {gy, w}, input_attrs_)[0];
    const Array gw = run_kernel(grad_weight_, {x, gy}, weight_attrs_)[0];
    const Array gwb = run_kernel(grad_weight_, {x, gy}, bias_attrs_)[0];
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(same_bits(run_kernel(forward_, {x, w}, c.attrs)[0], y));
      EXPECT_TRUE(same_bits(run_kernel(grad_input_, {gy, w}, input_attrs_)[0], gx));
      EXPECT_TRUE(same_bits(run_kernel(grad_weight_, {x, gy}, weight_attrs_)[0], gw));
      EXPECT_TRUE(same_bits(run_kernel(grad_weight_, {x, gy}, bias_attrs_)[0], gwb));
    }
  }

  const ConvCase<n>& c;
  const Array x = Array::random(c.x, 1);
  const Array w = Array::random(c.w, 2);
  const Array bias = Array::random({c.w[0]}, 3);

 private:
  const OpDef &forward_, &grad_input_, &grad_weight_;
  ConvGradInputAttrs<n> input_attrs_{c.attrs};
  ConvGradWeightAttrs<n> weight_attrs_{c.attrs}, bias_attrs_{c.attrs};
};

}  // namespace tidemark::testing
