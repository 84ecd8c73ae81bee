#include "ops/autograd/autograd.h"
#include "ops/elementwise/compare.h"
#include "ops/kernels/signature.h"
#include "ops/loss/kernels.h"
#include "ops/loss/loss.h"
#include "ops/registry/dispatch.h"
#include "ops/view/contiguous.h"

namespace tidemark {
namespace {

// Checks inputs `at` and `at` + 1: (N, C) float32 or bfloat16, gapless, and (N) int64.
void check_batch(const char* op, const OpQuery& query, size_t at) {
  require_floats(query, op, at, 1);
  require_dtype(query, op, at + 1, DType::kInt64);
  const Shape &scores = query.inputs[at].shape, &labels = query.inputs[at + 1].shape;
  if (scores.rank() != 2 || !(labels == Shape{scores[0]})) {
    fail(op, "scores must be (N, C) and labels (N), not " + scores.to_string() + " and " +
                 labels.to_string());
  }
  require(query.inputs[at].is_contiguous(), op, "scores must be contiguous");
}

TensorMeta scalar() { return TensorMeta::contiguous(DType::kFloat32, {}); }

// loss::RowSums for each row of `logits`.
TensorMeta row_sums(const TensorMeta& logits) {
  return TensorMeta::contiguous(DType::kFloat32, {logits.shape[0], 2});
}

// log_probs, labels -> loss
std::vector<TensorMeta> infer_nll_loss(const OpQuery& query) {
  require_inputs(query, "nll_loss", 2);
  require_dtype(query, "nll_loss", 0, DType::kFloat32);
  check_batch("nll_loss", query, 0);
  return {scalar()};
}

// g, labels -> d log_probs
std::vector<TensorMeta> infer_nll_loss_grad(const OpQuery& query) {
  require_inputs(query, "nll_loss_grad", 2);
  require_dtype(query, "nll_loss_grad", 0, DType::kFloat32);
  require_dtype(query, "nll_loss_grad", 1, DType::kInt64);
  return {TensorMeta::contiguous(
      DType::kFloat32,
      {query.inputs[1].shape[0], query.attr<loss::NllLossGradAttrs>().classes})};
}

std::vector<TensorMeta> infer_cross_entropy(const OpQuery& query) {
  require_inputs(query, "cross_entropy", 2);
  check_batch("cross_entropy", query, 0);
  return {scalar(), row_sums(query.inputs[0])};
}

std::vector<TensorMeta> infer_cross_entropy_grad(const OpQuery& query) {
  constexpr const char* kName = "cross_entropy_grad";
  require_inputs(query, kName, 4);
  require_dtype(query, kName, 0, DType::kFloat32);
  check_batch(kName, query, 1);
  const TensorMeta& logits = query.inputs[1];
  const TensorMeta expected = row_sums(logits), &given = query.inputs[3];
  require_dtype(query, kName, 3, expected.dtype);
  require(given.shape == expected.shape && given.is_contiguous(), kName,
          "sums must be (N, 2), contiguous");
  return {TensorMeta::contiguous(logits.dtype, logits.shape)};
}

// Only one score of each row is read.
OpCost nll_loss_cost(const OpQuery& query) {
  const int64_t rows = query.inputs[1].shape[0];
  return {static_cast<double>(rows), Bytes(rows * 12 + 4), false};
}

template <int flops>
OpCost cost(const OpQuery& query) {
  return streaming_cost(query, flops);
}

}  // namespace

const OpDef kNllLoss =
    define_op("nll_loss", infer_nll_loss, nll_loss_cost, loss::prepare_nll_loss_cpu);
const OpDef kNllLossGrad =
    define_op("nll_loss_grad", infer_nll_loss_grad, cost<0>, loss::prepare_nll_loss_grad_cpu);
const OpDef kCrossEntropy =
    define_op("cross_entropy", infer_cross_entropy, cost<25>, loss::prepare_cross_entropy_cpu);
const OpDef kCrossEntropyGrad = {.name = "cross_entropy_grad",
                                 .infer = infer_cross_entropy_grad,
                                 .cost = cost<22>,
                                 .may_overwrite = 0b10,  // the logits
                                 .prepare = {loss::prepare_cross_entropy_grad_cpu}};

Tensor nll_loss(const Tensor& log_probs, const Tensor& labels) {
  const Tensor x = contiguous(cast(log_probs, DType::kFloat32));
  Tensor y = dispatch1(kNllLoss, {x, labels});
  if (!needs_grad({x})) return y;
  record("nll_loss", {x}, {&y, 1},
         [labels_ = Saved(labels), classes = x.extent(1)](auto g, auto grads, auto) {
           grads[0] =
               dispatch1(kNllLossGrad, {g[0], labels_.get()}, loss::NllLossGradAttrs{classes});
         });
  return y;
}

Tensor cross_entropy(const Tensor& logits, const Tensor& labels,
                     std::optional<int64_t> ignore_index) {
  const Tensor x = contiguous(logits);
  const loss::CrossEntropyAttrs attrs{ignore_index.has_value(), ignore_index.value_or(0)};
  std::vector<Tensor> y = dispatch(kCrossEntropy, {x, labels}, attrs);
  if (needs_grad({x})) {
    record("cross_entropy", {x}, {y.data(), 1},
           [attrs, x_ = Saved(x), labels_ = Saved(labels), sums = Saved(y[1])](
               auto g, auto grads, auto) {
             grads[0] = dispatch1(kCrossEntropyGrad,
                                  {g[0], x_.get(), labels_.get(), sums.get()}, attrs);
           });
  }
  return y[0];
}

}  // namespace tidemark
