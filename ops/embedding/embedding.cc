#include "ops/embedding/embedding.h"

#include <string>

#include "ops/autograd/autograd.h"
#include "ops/kernels/signature.h"
#include "ops/registry/dispatch.h"
#include "ops/view/contiguous.h"

namespace tidemark {
namespace {

// Input 0 is float32 or bfloat16 and input 1 holds integers; both are gapless. Indices of
// positions must fit in 32 bits.
DType check(const char* op, const OpQuery& query) {
  require_inputs(query, op, 2);
  const DType dtype = require_floats(query, op, 0, 1);
  const TensorMeta& ids = query.inputs[1];
  if (ids.dtype != DType::kInt64 && ids.dtype != DType::kInt32) {
    fail(op, "ids of shape " + ids.shape.to_string() + " are " +
                 std::string(to_string(ids.dtype)) + ", not int64 or int32");
  }
  require(query.inputs[0].is_contiguous() && ids.is_contiguous(), op,
          "inputs must be contiguous");
  require(ids.shape.elements() <= INT32_MAX, op, "more than 2^31 - 1 ids");
  return dtype;
}

std::vector<TensorMeta> infer_embedding(const OpQuery& query) {
  const DType dtype = check("embedding", query);
  const Shape& table = query.inputs[0].shape;
  if (table.rank() != 2) {
    fail("embedding", "a table must be (V, D), not " + table.to_string());
  }
  Shape y = query.inputs[1].shape;
  y.push_back(table[1]);
  return {TensorMeta::contiguous(dtype, y)};
}

std::vector<TensorMeta> infer_embedding_grad(const OpQuery& query) {
  const DType dtype = check("embedding_grad", query);
  const Shape &gy = query.inputs[0].shape, &ids = query.inputs[1].shape;
  Shape expected = ids;
  expected.push_back(gy.rank() > 0 ? gy.back() : 0);
  if (!(gy == expected)) {
    fail("embedding_grad",
         "a gradient of shape " + gy.to_string() + " for ids of shape " + ids.to_string());
  }
  return {TensorMeta::contiguous(dtype, {query.attr<EmbeddingGradAttrs>().rows, gy.back()})};
}

// Only as many rows of the table are read as are written.
OpCost cost_embedding(const OpQuery& query) {
  return {.flops = 0, .bytes_moved = query.inputs[1].bytes() + 2 * query.outputs[0].bytes()};
}

OpCost cost_embedding_grad(const OpQuery& query) {
  OpCost cost = streaming_cost(query, 0);
  cost.flops = static_cast<double>(query.inputs[0].shape.elements());
  return cost;
}

// The CUDA kernels' workspace: the positions twice, for the sort, and two partial sums for
// every 128 of them.
Bytes model_grad_workspace(const OpQuery& query) {
  return Bytes(query.inputs[1].shape.elements() * 8 + query.inputs[0].shape.elements() / 16);
}

}  // namespace

const OpDef kEmbedding =
    define_op("embedding", infer_embedding, cost_embedding, prepare_embedding_cpu);
const OpDef kEmbeddingGrad =
    define_op("embedding_grad", infer_embedding_grad, cost_embedding_grad,
              prepare_embedding_grad_cpu, model_grad_workspace);

Tensor embedding(const Tensor& table_in, const Tensor& ids_in,
                 std::optional<int64_t> padding_idx) {
  const Tensor table = contiguous(table_in), ids = contiguous(ids_in);
  Tensor y = dispatch1(kEmbedding, {table, ids});
  EmbeddingGradAttrs attrs{table.extent(0), -1};
  if (padding_idx) {
    attrs.padding_idx = *padding_idx < 0 ? *padding_idx + attrs.rows : *padding_idx;
    if (attrs.padding_idx < 0 || attrs.padding_idx >= attrs.rows) {
      fail("embedding", "padding_idx " + std::to_string(*padding_idx) +
                            " is not a row of a table of shape " + table.shape().to_string());
    }
  }
  if (!needs_grad({table})) return y;
  record("embedding", {table}, {&y, 1}, [attrs, ids_ = Saved(ids)](auto g, auto grads, auto) {
    grads[0] = dispatch1(kEmbeddingGrad, {contiguous(g[0]), ids_.get()}, attrs);
  });
  return y;
}

}  // namespace tidemark
