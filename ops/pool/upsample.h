// Images and volumes of another size, usually a larger one: torch.nn.functional.interpolate.
//
// x (N, H, W, C) -> y (N, P, Q, C), or x (N, D, H, W, C) -> y (N, O, P, Q, C). Along a spatial
// dimension of `inputs` and `outputs` cells, output o reads position s, kept within the inputs:
//
//   kNearest             s = floor(o * inputs / outputs)
//   kLinear              s = (o + 1/2) * inputs / outputs - 1/2
//   kLinearAlignCorners  s = o * (inputs - 1) / (outputs - 1), or 0 for a single output
//
// y[o] = sum over i of max(0, 1 - |s - i|) * x[i]; dimensions multiply their weights (bilinear,
// trilinear). Positions are exact fractions. PyTorch rounds them to float32, and so its
// "nearest" takes a neighbouring cell at a few sizes.
//
// Gradient: gx[i] = sum over o of the same weights * gy[o], in the order of o. Nothing is
// saved.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/pool/windows.h"
#include "ops/registry/op.h"
#include "runtime/core/host_device.h"

namespace tidemark {

enum class Interpolation : int64_t { kNearest, kLinear, kLinearAlignCorners };

// Multiplies each spatial extent by its factor. Throws UsageError unless x has 4 or 5
// dimensions and there is a positive factor for each spatial one.
Tensor upsample(const Tensor& x, const Shape& factors,
                Interpolation interpolation = Interpolation::kNearest);
// Gives y these spatial extents, which may also be smaller than those of x. Throws likewise.
Tensor upsample_to(const Tensor& x, const Shape& extents,
                   Interpolation interpolation = Interpolation::kNearest);

struct UpsampleAttrs {
  // Of y; in the gradient: of x. Images have depth 1.
  int64_t extents[3] = {1, 1, 1};
  Interpolation interpolation = Interpolation::kNearest;
};

extern const OpDef kUpsample;      // x -> y
extern const OpDef kUpsampleGrad;  // gy -> gx

PreparedKernel prepare_upsample_cpu(const OpQuery& query);
PreparedKernel prepare_upsample_grad_cpu(const OpQuery& query);

// One spatial dimension, for kernels. Forward, a target is an output and its sources are the
// inputs that it reads; in the gradient, a target is an input and its sources are the outputs
// that read it.
struct UpsampleAxis {
  int64_t inputs = 1, outputs = 1;
  int64_t step = 1, start = 0, unit = 1;  // output o reads (start + o * step) / unit
  bool linear = false;
  bool gradient = false;

  TIDEMARK_HOST_DEVICE int64_t sources() const { return gradient ? outputs : inputs; }
  TIDEMARK_HOST_DEVICE int64_t targets() const { return gradient ? inputs : outputs; }
  // Those with a positive weight; there may be none in the gradient.
  TIDEMARK_HOST_DEVICE Range sources_of(int64_t target) const {
    return gradient ? outputs_of(target) : inputs_of(target);
  }
  TIDEMARK_HOST_DEVICE float weight(int64_t target, int64_t source) const {
    if (!linear) return 1;
    const int64_t output = gradient ? source : target, input = gradient ? target : source;
    const int64_t distance = position(output) - input * unit;
    return static_cast<float>(unit - (distance < 0 ? -distance : distance)) /
           static_cast<float>(unit);
  }

  // In units.
  TIDEMARK_HOST_DEVICE int64_t position(int64_t output) const {
    const int64_t at = start + output * step, last = (inputs - 1) * unit;
    return at < 0 ? 0 : at < last ? at : last;
  }
  TIDEMARK_HOST_DEVICE Range inputs_of(int64_t output) const {
    const int64_t at = position(output), first = divide(at, unit);
    return {first, first + (linear && at > first * unit ? 2 : 1)};
  }
  TIDEMARK_HOST_DEVICE Range outputs_of(int64_t input) const {
    const int64_t end = input == inputs - 1 ? outputs : first_at((input + 1) * unit);
    // Linear: after the position of the input before this one.
    const int64_t begin =
        input == 0 ? 0 : first_at(linear ? (input - 1) * unit + 1 : input * unit);
    return {begin < end ? begin : end, end};
  }
  // The first output at `at` or after it, where positions are not yet kept within the inputs.
  TIDEMARK_HOST_DEVICE int64_t first_at(int64_t at) const {
    if (at <= start) return 0;
    const int64_t output = divide(at - start - 1, step) + 1;
    return output < outputs ? output : outputs;
  }
  // REQUIRES: a >= 0, b > 0. 64-bit division is several times slower on a GPU.
  TIDEMARK_HOST_DEVICE static int64_t divide(int64_t a, int64_t b) {
    if ((a | b) > 0xffffffff) return a / b;
    return static_cast<uint32_t>(a) / static_cast<uint32_t>(b);
  }
};

struct UpsampleGrid {
  UpsampleAxis slices, rows, columns;
  int64_t channels = 0;
};

// Of the operator, or of its gradient.
UpsampleGrid upsample_grid(const OpQuery& query, bool gradient);

}  // namespace tidemark
