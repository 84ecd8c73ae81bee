#include "ops/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "ops/attention/kernels.h"
#include "ops/autograd/autograd.h"
#include "ops/kernels/signature.h"
#include "ops/reduce/reduce.h"
#include "ops/registry/dispatch.h"
#include "ops/shapes/check.h"
#include "ops/view/contiguous.h"
#include "ops/view/view.h"
#include "runtime/session/session.h"

namespace tidemark {
namespace {

using attention::AttentionAttrs;
using attention::Extents;
using attention::has_rows;
using attention::OptionalInputs;
using attention::with_rows;

void check_rows(const char* op, const OpQuery& query, size_t i) {
  const TensorMeta& x = query.inputs[i];
  const std::string which = "input " + std::to_string(i);
  check_fits(op, query, x.shape.rank() == 4, "queries, keys and values must be (B, T, H, D)");
  if (x.shape.elements() == 0) throw_misfit(op, query, which + " is empty");
  if (!has_rows(x)) throw_misfit(op, query, which + " must have contiguous rows");
}

// Checks the input that says which keys exist, of which there are (B, Tk).
void check_keys(const char* op, const OpQuery& query, const TensorMeta& keys,
                const Shape& all) {
  const bool lengths = keys.shape == Shape{all[0]};
  check_fits(op, query, lengths || keys.shape == all,
             "the keys in use must be given by (B) lengths or a (B, Tk) mask");
  const bool whole = keys.dtype == DType::kInt32 || keys.dtype == DType::kInt64;
  if (!whole && (lengths || (keys.dtype != DType::kBool && keys.dtype != DType::kUInt8))) {
    throw_misfit(op, query,
                 (lengths ? "lengths must be int32 or int64, not "
                          : "a mask must be bool, uint8, int32 or int64, not ") +
                     std::string(to_string(keys.dtype)));
  }
}

// Checks q, k and v, the inputs from `at` on, and the optional inputs, from `optional_at` on.
void check_operands(const char* op, const OpQuery& query, size_t at, size_t optional_at) {
  const size_t least = optional_at + (query.attr<AttentionAttrs>().starts ? 1 : 0);
  if (query.inputs.size() != least && query.inputs.size() != least + 1) {
    throw_misfit(op, query, "takes " + std::to_string(least) + " inputs, or one more");
  }
  const DType dtype = check_float(op, query, at);
  for (size_t i = at; i < at + 3; ++i) {
    check_dtype(op, query, i, dtype);
    check_rows(op, query, i);
  }
  const Shape& q = query.inputs[at].shape;
  const Shape& k = query.inputs[at + 1].shape;
  check_fits(op, query, k == query.inputs[at + 2].shape,
             "keys and values must have the same shape");
  check_fits(op, query, q[0] == k[0] && q[2] % k[2] == 0 && q[3] == k[3],
             "queries and keys may differ only in T, and in that several heads of the queries "
             "share one of the keys");
  check_fits(op, query, q[2] == k[2] || !query.attr<AttentionAttrs>().materialised(),
             "materialised attention has as many heads of keys as of queries");
  const OptionalInputs optional(query, optional_at);
  if (optional.keys) check_keys(op, query, query.inputs[optional.keys], {q[0], k[1]});
  if (optional.starts) {
    check_fits(op, query, query.inputs[optional.starts].shape == Shape{q[0], q[1]},
               "the first keys that queries see must be (B, Tq)");
    check_dtype(op, query, optional.starts, DType::kInt32);
  }
}

// P has q's type; the log-sum-exp is float32.
TensorMeta saved_meta(const AttentionAttrs& attrs, const TensorMeta& q, const TensorMeta& k) {
  const Shape &qs = q.shape, &ks = k.shape;
  if (attrs.materialised()) {
    return TensorMeta::contiguous(q.dtype, {qs[0], qs[2], qs[1], ks[1]});
  }
  return TensorMeta::contiguous(DType::kFloat32, {qs[0], qs[2], qs[1]});
}

std::vector<TensorMeta> infer(const OpQuery& query) {
  check_operands("attention", query, 0, 3);
  const auto& attrs = query.attr<AttentionAttrs>();
  if (!(attrs.dropout >= 0 && attrs.dropout < 1)) {
    fail("attention", "p is " + std::to_string(attrs.dropout) + ", not in [0, 1)");
  }
  const TensorMeta& q = query.inputs[0];
  return {TensorMeta::contiguous(q.dtype, q.shape), saved_meta(attrs, q, query.inputs[1])};
}

std::vector<TensorMeta> infer_grad(const OpQuery& query) {
  constexpr const char* kName = "attention_grad";
  check_operands(kName, query, 1, 6);
  const TensorMeta q = TensorMeta::contiguous(query.inputs[1].dtype, query.inputs[1].shape);
  const TensorMeta k = attention::key_gradients(q, query.inputs[2]);
  const TensorMeta saved = saved_meta(query.attr<AttentionAttrs>(), q, k);
  for (const auto& [i, meta] : {std::pair{0, &q}, {4, &q}, {5, &saved}}) {
    const TensorMeta& input = query.inputs[static_cast<size_t>(i)];
    check_fits(
        kName, query,
        input.shape == meta->shape && input.dtype == meta->dtype && input.is_contiguous(),
        "y, its gradient and the saved tensors must be those of attention");
  }
  return {q, k, k};
}

// The pairs of a query and a key that the query may see, over all heads.
double pairs(const OpQuery& query, size_t q) {
  const Extents extents(query.inputs[q], query.inputs[q + 1]);
  const auto heads = static_cast<double>(extents.all_heads());
  const auto queries = static_cast<double>(extents.queries);
  const auto keys = static_cast<double>(extents.keys);
  if (!query.attr<AttentionAttrs>().causal) return heads * queries * keys;
  const double ramp = std::min(queries, keys);
  return heads * (ramp * (ramp + 1) / 2 + (queries - ramp) * keys);
}

// Each product does one multiply-add per pair and element of a head; exponential and dropout
// take some thirty operations per pair.
OpCost products(const OpQuery& query, size_t q, int count) {
  const auto depth = static_cast<double>(query.inputs[q].shape[3]);
  OpCost cost = streaming_cost(query, 0);
  cost.flops = pairs(query, q) * (2 * depth * count + 30);
  cost.matrix = true;
  cost.bfloat16 = query.inputs[q].dtype == DType::kBFloat16;
  return cost;
}

OpCost cost(const OpQuery& query) { return products(query, 0, 2); }

// The memory-efficient backward pass computes the scores once more.
OpCost cost_grad(const OpQuery& query) {
  return products(query, 1, query.attr<AttentionAttrs>().materialised() ? 4 : 5);
}

Bytes matrix_bytes(const OpQuery& query, size_t q, DType dtype) {
  const Extents extents(query.inputs[q], query.inputs[q + 1]);
  return size_of(dtype) * (extents.all_heads() * extents.queries * extents.keys);
}

// The workspace of the CUDA kernels. Materialised attention with dropout keeps the surviving
// part of P, and in bfloat16 the scores in float32.
Bytes model_workspace(const OpQuery& query) {
  const auto& attrs = query.attr<AttentionAttrs>();
  const bool scores = attrs.dropout > 0 || query.inputs[0].dtype == DType::kBFloat16;
  return attrs.materialised() && scores ? matrix_bytes(query, 0, DType::kFloat32) : Bytes(0);
}

// One number per query. Materialised attention adds dP and, in bfloat16, dS; memory-efficient
// attention with `starts` adds one past the last query that sees each tile of keys.
Bytes model_grad_workspace(const OpQuery& query) {
  const Extents extents(query.inputs[1], query.inputs[2]);
  const DType dtype = query.inputs[1].dtype;
  const Bytes rows =
      align_up(size_of(DType::kFloat32) * (extents.all_heads() * extents.queries));
  const auto& attrs = query.attr<AttentionAttrs>();
  if (!attrs.materialised()) {
    return attrs.starts ? rows + attention::query_ends_bytes(extents) : rows;
  }
  const Bytes dp = matrix_bytes(query, 1, DType::kFloat32);
  return dtype == DType::kFloat32 ? rows + dp
                                  : rows + align_up(dp) + matrix_bytes(query, 1, dtype);
}

// Inputs of a call, of which the last two may be missing.
std::vector<Tensor> operands(std::initializer_list<Tensor> tensors, const Tensor& keys,
                             const Tensor& starts) {
  std::vector<Tensor> all(tensors);
  if (keys.defined()) all.push_back(keys);
  if (starts.defined()) all.push_back(starts);
  return all;
}

// (B, T, H, D) to (B, T, H * sharing, D), each head repeated.
Tensor repeat_heads(const Tensor& x, int64_t sharing) {
  if (sharing == 1) return x;
  const Shape& from = x.shape();
  return reshape(expand(unsqueeze(x, 3), {from[0], from[1], from[2], sharing, from[3]}),
                 {from[0], from[1], from[2] * sharing, from[3]});
}

// The gradient of repeat_heads, from that of the repeated ones.
Tensor add_repeated(const Tensor& g, int64_t sharing) {
  if (sharing == 1) return g;
  const Shape& from = g.shape();
  const int64_t heads = from[2] / sharing;
  return reshape(sum_to(reshape(g, {from[0], from[1], heads, sharing, from[3]}),
                        {from[0], from[1], heads, 1, from[3]}),
                 {from[0], from[1], heads, from[3]});
}

// How many heads of q share one of k; 1 for what does not fit, which infer() refuses.
int64_t heads_sharing(const Tensor& q, const Tensor& k) {
  if (q.shape().rank() != 4 || k.shape().rank() != 4) return 1;
  const int64_t heads = k.extent(2);
  return heads > 0 && q.extent(2) % heads == 0 ? std::max<int64_t>(1, q.extent(2) / heads) : 1;
}

}  // namespace

const OpDef kAttention =
    define_op("attention", infer, cost, attention::prepare_attention_cpu, model_workspace);
const OpDef kAttentionGrad =
    define_op("attention_grad", infer_grad, cost_grad, attention::prepare_attention_grad_cpu,
              model_grad_workspace);

Tensor scaled_dot_product_attention(const Tensor& q_in, const Tensor& k_in, const Tensor& v_in,
                                    const AttentionOptions& options) {
  Session& session = Session::current();
  const int64_t sharing = heads_sharing(q_in, k_in);
  if (options.implementation == AttentionImplementation::kMaterialised && sharing > 1) {
    return scaled_dot_product_attention(q_in, repeat_heads(k_in, sharing),
                                        repeat_heads(v_in, sharing), options);
  }
  const Tensor q = with_rows(q_in), k = with_rows(k_in), v = with_rows(v_in);
  const int64_t depth = q.shape().rank() == 0 ? 1 : q.shape().back();
  const AttentionAttrs attrs{
      static_cast<int64_t>(options.implementation), options.causal, options.dropout,
      options.scale.value_or(1 / std::sqrt(static_cast<double>(depth))),
      // Without dropout nothing depends on the seed, so one signature serves all seeds.
      options.dropout > 0 ? static_cast<int64_t>(session.seed()) : 0, options.starts.defined()};
  Scalars scalars{};
  if (options.dropout > 0 && q.shape().rank() == 4 && k.shape().rank() == 4) {
    const Extents extents(q.meta(), k.meta());
    const int64_t blocks =
        extents.all_heads() * extents.queries * attention::Dropout::blocks_of_row(extents.keys);
    // Begins with a block, and leaves the stream at the end of one: draws that begin with a
    // block are faster on a GPU.
    const uint64_t skip = (4 - session.random_offset() % 4) % 4;
    const uint64_t start = session.reserve_random(skip + static_cast<uint64_t>(blocks) * 4);
    const uint64_t first_block = (start + skip) / 4;
    scalars[0] = static_cast<double>(first_block);
  }
  std::vector<Tensor> out =
      dispatch(kAttention, operands({q, k, v}, options.keys, options.starts), attrs, scalars);
  if (!needs_grad({q, k, v})) return out[0];
  record(
      "attention", {q, k, v}, {out.data(), 1},
      [=, q_ = Saved(q), k_ = Saved(k), v_ = Saved(v), y_ = Saved(out[0]),
       saved_ = Saved(out[1]), keys_ = Saved(options.keys),
       starts_ = Saved(options.starts)](auto g, auto grads, auto wanted) {
        std::vector<Tensor> gradients = dispatch(
            kAttentionGrad,
            operands({contiguous(g[0]), q_.get(), k_.get(), v_.get(), y_.get(), saved_.get()},
                     keys_.get(), starts_.get()),
            attrs, scalars);
        grads[0] = std::move(gradients[0]);
        for (size_t i = 1; i < 3; ++i) {
          const Tensor repeated = std::exchange(gradients[i], {});
          if (wanted[i]) grads[i] = add_repeated(repeated, sharing);
        }
      });
  return out[0];
}

}  // namespace tidemark
