#include "ops/loss/linear_cross_entropy.h"

#include <utility>

#include "ops/autograd/autograd.h"
#include "ops/loss/linear_cross_entropy_kernels.h"
#include "ops/registry/dispatch.h"
#include "ops/shapes/check.h"
#include "ops/view/contiguous.h"

namespace tidemark {
namespace {

constexpr const char* kName = "linear_cross_entropy";

std::vector<TensorMeta> infer(const OpQuery& query) {
  const size_t count = query.inputs.size();
  const auto& attrs = query.attr<loss::LinearCrossEntropyAttrs>();
  check_fits(kName, query, count == 3 || count == 4, "takes 3 or 4 inputs");
  const DType dtype = check_float(kName, query, 0);
  check_dtype(kName, query, 1, dtype);
  check_dtype(kName, query, 2, DType::kInt64);
  const Shape &x = query.inputs[0].shape, &weight = query.inputs[1].shape;
  check_fits(kName, query,
             x.rank() == 2 && weight.rank() == 2 && x[1] == weight[1] &&
                 query.inputs[2].shape == Shape{x[0]},
             "x must be (N, I), the weight (V, I) and labels (N)");
  check_fits(kName, query, weight.elements() > 0, "the weight is empty");
  check_fits(kName, query, attrs.chunk > 0, "a chunk must have rows");
  check_fits(kName, query, query.inputs[0].is_contiguous() && query.inputs[1].is_contiguous(),
             "x and the weight must be contiguous");
  if (count == 4) {
    check_dtype(kName, query, 3, DType::kFloat32);
    check_fits(kName, query, query.inputs[3].shape == Shape{}, "the scale must be a scalar");
  }
  std::vector<TensorMeta> outputs{TensorMeta::contiguous(DType::kFloat32, {}),
                                  TensorMeta::contiguous(DType::kInt64, {})};
  if (attrs.gx) outputs.push_back(TensorMeta::contiguous(dtype, x));
  if (attrs.gweight) outputs.push_back(TensorMeta::contiguous(DType::kFloat32, weight));
  return outputs;
}

// A chunk's logits are written and read once more for each product that they enter.
OpCost cost(const OpQuery& query) {
  const loss::LinearCrossEntropyProblem problem(query);
  const int64_t products = 1 + problem.gx + problem.gweight;
  const double logits =
      static_cast<double>(problem.batch.rows) * static_cast<double>(problem.batch.classes);
  return {.flops = 2 * logits * static_cast<double>(problem.x.shape[1] * products),
          .bytes_moved =
              bytes_moved(query) + problem.logits(problem.batch.rows).bytes() * (2 * products),
          .matrix = true,
          .bfloat16 = problem.x.dtype == DType::kBFloat16};
}

Bytes model_workspace(const OpQuery& query) {
  const loss::LinearCrossEntropyProblem problem(query);
  return loss::LinearCrossEntropyWorkspace(problem, Bytes(0), Bytes(8)).total;
}

std::vector<TensorMeta> infer_grad(const OpQuery& query) {
  constexpr const char* kGradName = "linear_cross_entropy_grad";
  check_fits(kGradName, query, query.inputs.size() == 2, "takes 2 inputs");
  check_dtype(kGradName, query, 0, DType::kFloat32);
  check_float(kGradName, query, 1);
  check_fits(kGradName, query, query.inputs[0].shape == Shape{}, "g must be a scalar");
  check_fits(kGradName, query, query.inputs[1].is_contiguous(), "gradients must be contiguous");
  const bool narrow = query.attr<loss::LinearCrossEntropyGradAttrs>().bfloat16 != 0;
  return {TensorMeta::contiguous(narrow ? DType::kBFloat16 : DType::kFloat32,
                                 query.inputs[1].shape)};
}

OpCost cost_grad(const OpQuery& query) {
  return {.flops = static_cast<double>(query.outputs[0].shape.elements()),
          .bytes_moved = bytes_moved(query)};
}

}  // namespace

const OpDef kLinearCrossEntropy =
    define_op(kName, infer, cost, loss::prepare_linear_cross_entropy_cpu, model_workspace);
const OpDef kLinearCrossEntropyGrad = {
    .name = "linear_cross_entropy_grad",
    .infer = infer_grad,
    .cost = cost_grad,
    .may_overwrite = 0b10,
    .prepare = {loss::prepare_linear_cross_entropy_grad_cpu}};

LinearCrossEntropy linear_cross_entropy(const Tensor& x_in, const Tensor& weight_in,
                                        const Tensor& labels,
                                        const LinearCrossEntropyOptions& options) {
  const Tensor x = contiguous(x_in), weight = contiguous(weight_in);
  loss::LinearCrossEntropyAttrs attrs;
  attrs.labels = {options.ignore_index.has_value(), options.ignore_index.value_or(0)};
  if (x.shape().rank() == 2 && weight.elements() > 0) {  // else dispatch throws
    attrs.chunk = loss::rows_of_chunk(x.extent(0), weight.extent(0));
  }
  attrs.gx = needs_grad({x});
  attrs.gweight = needs_grad({weight});
  std::vector<Tensor> inputs{x, weight, labels};
  if (options.scale.defined()) inputs.push_back(options.scale);
  std::vector<Tensor> made = dispatch(kLinearCrossEntropy, inputs, attrs);
  LinearCrossEntropy result{made[0], made[1]};
  if (!attrs.gx && !attrs.gweight) return result;
  Saved gx = attrs.gx ? Saved(made[2]) : Saved();
  Saved gweight = attrs.gweight ? Saved(made.back()) : Saved();
  record(kName, {x, weight}, {&result.loss, 1},
         [=, narrow = x.dtype() == DType::kBFloat16](auto g, auto grads, auto wanted) mutable {
           // The weight's first: it is the larger, and must go before the next is made.
           for (const size_t i : {1, 0}) {
             if (!wanted[i]) continue;
             grads[i] = dispatch1(kLinearCrossEntropyGrad,
                                  {g[0], std::exchange(i == 1 ? gweight : gx, {}).get()},
                                  loss::LinearCrossEntropyGradAttrs{narrow});
           }
         });
  return result;
}

}  // namespace tidemark
