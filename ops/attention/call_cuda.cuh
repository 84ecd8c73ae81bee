// The parameters of an attention call, as its CUDA kernels take them.
#pragma once

#include "ops/attention/kernels.h"
#include "ops/kernels/any_float.h"
#include "ops/kernels/launch_cuda.cuh"

namespace tidemark::attention {

struct Call {
  // Inputs `at`, `at` + 1, `at` + 2 are q, k and v. The optional ones come from `optional_at`
  // on.
  Call(const OpQuery& query, size_t at, size_t optional_at)
      : attrs(query.attr<AttentionAttrs>()),
        extents(query.inputs[at], query.inputs[at + 1]),
        q_rows(query.inputs[at]),
        k_rows(query.inputs[at + 1], extents.heads),
        v_rows(query.inputs[at + 2], extents.heads),
        whole_q(TensorMeta::contiguous(DType::kFloat32, query.inputs[at].shape)),
        whole_k(key_gradients(query.inputs[at], query.inputs[at + 1])),
        first_input(at),
        optional(query, optional_at),
        filter(optional.filter(query)),
        starts(optional.first_keys(query)) {}

  // A copy with this call's addresses and random numbers filled in.
  Call with(const KernelArgs& args) const {
    Call call = *this;
    call.q = float_input(args, first_input);
    call.k = float_input(args, first_input + 1);
    call.v = float_input(args, first_input + 2);
    call.keys = optional.keys ? args.inputs[optional.keys] : nullptr;
    call.starts.data = optional.starts ? args.in<int32_t>(optional.starts) : nullptr;
    call.dropout = Dropout(attrs.dropout, attrs.seed, args.scalars[0], extents.keys);
    call.random_keys = PhiloxKeys(philox_key(call.dropout.seed));
    return call;
  }

  // A query past the last may be asked for.
  TIDEMARK_HOST_DEVICE bool sees(int64_t b, int64_t query, int64_t key) const {
    return key < extents.keys && (attrs.causal == 0 || key <= query) &&
           filter.keeps(keys, b, key) &&
           (!starts.data || (query < extents.queries && key >= starts.of(b, query)));
  }
  // The first of the keys that any of `rows` queries sees, by their starts.
  TIDEMARK_HOST_DEVICE int64_t first_key(int64_t b, int64_t query, int64_t rows) const {
    if (!starts.data) return 0;
    const int64_t end = query + rows < extents.queries ? query + rows : extents.queries;
    int64_t first = extents.keys;
    for (int64_t i = query; i < end; ++i) {
      const int64_t start = starts.of(b, i);
      first = start < first ? start : first;
    }
    return first;
  }
  // The factor that dropout applies to P. `row` counts queries over all heads.
  TIDEMARK_HOST_DEVICE float multiplier(int64_t row, int64_t key) const {
    return dropout.active() ? dropout.multiplier(row, key) : 1;
  }
  TIDEMARK_HOST_DEVICE int64_t rows() const { return extents.all_heads() * extents.queries; }

  AttentionAttrs attrs;
  Extents extents;
  Rows q_rows, k_rows, v_rows;
  Rows whole_q, whole_k;  // of gapless q and of gradients of k
  size_t first_input;
  OptionalInputs optional;
  KeyFilter filter;
  QueryStarts starts;
  FloatInput q, k, v;
  const void* keys = nullptr;
  Dropout dropout;
  PhiloxKeys random_keys{{}};  // of dropout's seed
};

// The tile that this block works on. Each head's `along` queries or keys are split into tiles
// of `rows`. `last_first`: blocks that start earlier take later tiles, which are the longest
// where attention is causal.
struct Place {
  __device__ Place(const Extents& extents, int64_t along, int rows, bool last_first = false) {
    const int64_t each = (along + rows - 1) / rows;
    head = blockIdx.x / each;
    first = blockIdx.x % each * rows;
    if (last_first) first = (each - 1) * rows - first;
    b = head / extents.heads;
    h = head % extents.heads;
  }
  int64_t head, b, h, first;
};

// Computes delta[row] = sum over d of g y, for backward.
void launch_delta(const KernelArgs& args, const Call& call, const FloatInput& g,
                  const FloatInput& y, float* delta);

// The memory-efficient implementation on tensor cores, for bfloat16, and for float32 where TF32
// is allowed. tensor_cores_take(): whether it can handle q, k and v, the inputs from `at` on,
// on the current GPU.
bool tensor_cores_take(const OpQuery& query, size_t at);
PreparedKernel prepare_tensor_cores_cuda(const OpQuery& query);
PreparedKernel prepare_tensor_cores_grad_cuda(const OpQuery& query);

PreparedKernel prepare_materialised_cuda(const OpQuery& query);
PreparedKernel prepare_materialised_grad_cuda(const OpQuery& query);

}  // namespace tidemark::attention
