#include "ops/pool/upsample.h"

#include "ops/autograd/autograd.h"
#include "ops/registry/dispatch.h"
#include "ops/shapes/check.h"
#include "ops/view/contiguous.h"
#include "runtime/core/errors.h"

namespace tidemark {
namespace {

std::vector<TensorMeta> infer_resized(const char* name, const OpQuery& query) {
  const DType dtype = check_floats(name, query, {kAnyRank}, 1);
  Shape shape = query.inputs[0].shape;
  check_fits(name, query, shape.rank() == 4 || shape.rank() == 5,
             "the input must have 4 or 5 dimensions");
  const int64_t* const extents = query.attr<UpsampleAttrs>().extents + (5 - shape.rank());
  for (size_t axis = 1; axis + 1 < shape.rank(); ++axis) {
    const int64_t extent = extents[axis - 1];
    check_fits(name, query, extent >= 1 && std::max(extent, shape[axis]) <= kMaxCells,
               "each extent must be positive and at most 2^30");
    shape[axis] = extent;
  }
  return {TensorMeta::contiguous(dtype, shape)};
}

std::vector<TensorMeta> infer_upsample(const OpQuery& query) {
  return infer_resized("upsample", query);
}
std::vector<TensorMeta> infer_upsample_grad(const OpQuery& query) {
  return infer_resized("upsample_grad", query);
}

// A product and an addition for each of the inputs that an element of y reads.
OpCost cost(const OpQuery& query) {
  const Shape &from = query.inputs[0].shape, &to = query.outputs[0].shape;
  const bool linear = query.attr<UpsampleAttrs>().interpolation != Interpolation::kNearest;
  const int64_t terms = linear ? int64_t{1} << (from.rank() - 2) : 1;
  return {.flops = 2 * static_cast<double>(terms) *
                   static_cast<double>(std::max(from.elements(), to.elements())),
          .bytes_moved = bytes_moved(query)};
}

UpsampleAxis axis_of(int64_t inputs, int64_t outputs, Interpolation interpolation) {
  switch (interpolation) {
    case Interpolation::kLinear:
      return {inputs, outputs, 2 * inputs, inputs - outputs, 2 * outputs, true};
    case Interpolation::kLinearAlignCorners:
      return {inputs, outputs, inputs - 1, 0, std::max<int64_t>(outputs - 1, 1), true};
    default: return {inputs, outputs, inputs, 0, outputs};
  }
}

Tensor run(const Tensor& x_in, const UpsampleAttrs& attrs) {
  const Tensor x = contiguous(x_in);
  Tensor y = dispatch1(kUpsample, {x}, attrs);
  UpsampleAttrs grad_attrs = attrs;
  std::copy(x.shape().begin() + 1, x.shape().end() - 1,
            grad_attrs.extents + (5 - x.shape().rank()));
  record("upsample", {x}, std::span(&y, 1),
         [grad_attrs](std::span<const Tensor> gys, std::span<Tensor> grads,
                      std::span<const bool> wanted) {
           if (!wanted[0]) return;
           grads[0] = dispatch1(kUpsampleGrad, {contiguous(gys[0])}, grad_attrs);
         });
  return y;
}

// `sizes`: factors or extents.
void check_sizes(const Tensor& x, const Shape& sizes) {
  const size_t rank = x.shape().rank();
  if ((rank == 4 || rank == 5) && sizes.rank() == rank - 2) return;
  throw UsageError(
      "[upsample] takes (N, H, W, C) and two sizes, or (N, D, H, W, C) and three, "
      "not " +
      x.shape().to_string() + " and " + sizes.to_string());
}

}  // namespace

const OpDef kUpsample = define_op("upsample", infer_upsample, cost, prepare_upsample_cpu);
const OpDef kUpsampleGrad =
    define_op("upsample_grad", infer_upsample_grad, cost, prepare_upsample_grad_cpu);

UpsampleGrid upsample_grid(const OpQuery& query, bool gradient) {
  const Shape& x = (gradient ? query.outputs : query.inputs)[0].shape;
  const Shape& y = (gradient ? query.inputs : query.outputs)[0].shape;
  const Interpolation interpolation = query.attr<UpsampleAttrs>().interpolation;
  const auto axis = [&](size_t from_last) {
    UpsampleAxis one;
    if (const size_t i = x.rank() - from_last; i > 0) one = axis_of(x[i], y[i], interpolation);
    one.gradient = gradient;
    return one;
  };
  return {axis(4), axis(3), axis(2), x.back()};
}

Tensor upsample_to(const Tensor& x, const Shape& extents, Interpolation interpolation) {
  check_sizes(x, extents);
  UpsampleAttrs attrs{.interpolation = interpolation};
  std::copy(extents.begin(), extents.end(), attrs.extents + (3 - extents.rank()));
  return run(x, attrs);
}

Tensor upsample(const Tensor& x, const Shape& factors, Interpolation interpolation) {
  check_sizes(x, factors);
  Shape extents = factors;
  for (size_t i = 0; i < extents.rank(); ++i) {
    if (factors[i] < 1 || factors[i] > kMaxCells) {
      throw UsageError("[upsample] factors must be positive and at most 2^30, not " +
                       factors.to_string());
    }
    extents[i] *= x.extent(static_cast<int64_t>(i) + 1);
  }
  return upsample_to(x, extents, interpolation);
}

}  // namespace tidemark
