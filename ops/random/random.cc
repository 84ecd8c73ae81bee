#include "ops/random/random.h"

#include <string>

#include "ops/autograd/autograd.h"
#include "ops/random/kernels.h"
#include "ops/registry/dispatch.h"
#include "runtime/session/session.h"

namespace tidemark {
namespace {

template <const OpDef* op>
std::vector<TensorMeta> infer_random(const OpQuery& query) {
  require_inputs(query, op->name, 0);
  const Shape shape = query.attr<random::RandomAttrs>().shape.shape();
  for (int64_t extent : shape) {
    if (extent < 0) fail(op->name, "a negative extent in shape " + shape.to_string());
  }
  return {TensorMeta::contiguous(DType::kFloat32, shape)};
}

std::vector<TensorMeta> infer_dropout(const OpQuery& query) {
  require_inputs(query, "dropout", 1);
  const DType dtype = require_floats(query, "dropout", 0, 1);
  const double p = query.attr<random::DropoutAttrs>().p;
  if (!(p >= 0 && p < 1)) fail("dropout", "p is " + std::to_string(p) + ", not in [0, 1)");
  return {TensorMeta::contiguous(dtype, query.inputs[0].shape)};
}

// Each number takes a quarter of Philox's ten rounds, and its conversion.
OpCost cost(const OpQuery& query) { return streaming_cost(query, 30); }

// Reserves a call's numbers and returns where they start. Whole blocks are reserved, so that
// neighbouring calls do not share one.
double reserve(Session& session, int64_t count) {
  return static_cast<double>(
      session.reserve_random((static_cast<uint64_t>(count) + 3) / 4 * 4));
}

Tensor draw(const OpDef& op, const Shape& shape, double a, double b) {
  Session& session = Session::current();
  const random::RandomAttrs attrs{ShapeAttrs(shape), static_cast<int64_t>(session.seed())};
  return dispatch1(op, {}, attrs, {reserve(session, shape.elements()), a, b});
}

}  // namespace

const OpDef kUniform =
    define_op("uniform", infer_random<&kUniform>, cost, random::prepare_uniform_cpu);
const OpDef kNormal =
    define_op("normal", infer_random<&kNormal>, cost, random::prepare_normal_cpu);
const OpDef kDropout = {.name = "dropout",
                        .infer = infer_dropout,
                        .cost = cost,
                        .may_overwrite = 0b1,
                        .prepare = {random::prepare_dropout_cpu}};

Tensor uniform(const Shape& shape, double low, double high) {
  return draw(kUniform, shape, low, high);
}

Tensor normal(const Shape& shape, double mean, double deviation) {
  return draw(kNormal, shape, mean, deviation);
}

Tensor dropout(const Tensor& x, double p) {
  if (p == 0) return x;
  Session& session = Session::current();
  const random::DropoutAttrs attrs{p, static_cast<int64_t>(session.seed())};
  const Scalars scalars{reserve(session, x.elements())};
  Tensor y = dispatch1(kDropout, {x}, attrs, scalars);
  if (!needs_grad({x})) return y;
  record("dropout", {x}, {&y, 1}, [attrs, scalars](auto g, auto grads, auto) {
    grads[0] = dispatch1(kDropout, {g[0]}, attrs, scalars);
  });
  return y;
}

}  // namespace tidemark
