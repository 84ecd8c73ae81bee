#include "ops/attention/tasks_cpu.h"

#include <limits>

namespace tidemark::attention {

namespace {

// Calls f with a pointer to the stored type.
template <class F>
void with_pointer(const FloatInput& from, const F& f) {
  if (from.bfloat16) return f(static_cast<const BFloat16*>(from.data));
  f(static_cast<const float*>(from.data));
}
template <class F>
void with_pointer(const FloatOutput& to, const F& f) {
  if (to.bfloat16) return f(static_cast<BFloat16*>(to.data));
  f(static_cast<float*>(to.data));
}

}  // namespace

void pack(const FloatInput& from, int64_t step, int64_t rows, int64_t depth,
          int64_t padded_rows, int64_t width, float factor, float* to) {
  with_pointer(from, [&](const auto* source) {
    for (int64_t r = 0; r < padded_rows; ++r) {
      const int64_t n = r < rows ? depth : 0;
      float* line = to + r * width;
      for (int64_t d = 0; d < n; ++d) line[d] = source[r * step + d] * factor;
      std::fill(line + n, line + width, 0.0F);
    }
  });
}

void pack_transposed(const FloatInput& from, int64_t step, int64_t rows, int64_t depth,
                     int64_t width, float* to) {
  constexpr int64_t kLine = 16;
  with_pointer(from, [&](const auto* first) {
    for (int64_t begin = 0; begin < width; begin += kLine) {
      const int64_t n = std::clamp<int64_t>(rows - begin, 0, kLine);
      const auto* source = first + begin * step;
      for (int64_t d = 0; d < depth; ++d) {
        float* line = to + d * width + begin;
        for (int64_t r = 0; r < n; ++r) line[r] = source[r * step + d];
        std::fill(line + n, line + kLine, 0.0F);
      }
    }
  });
}

void unpack(const float* from, int64_t width, int64_t rows, int64_t depth, float factor,
            const FloatOutput& to, int64_t step) {
  with_pointer(to, [&](auto* target) {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t d = 0; d < depth; ++d) target[r * step + d] = from[r * width + d] * factor;
    }
  });
}

Problem::Problem(const OpQuery& query, size_t at, size_t optional_at)
    : attrs(query.attr<AttentionAttrs>()),
      dtype(query.inputs[at].dtype),
      extents(query.inputs[at], query.inputs[at + 1]),
      q(query.inputs[at]),
      k(query.inputs[at + 1], extents.heads),
      v(query.inputs[at + 2], extents.heads),
      whole_q(TensorMeta::contiguous(DType::kFloat32, query.inputs[at].shape)),
      whole_k(key_gradients(query.inputs[at], query.inputs[at + 1])),
      optional(query, optional_at),
      filter(optional.filter(query)),
      first_keys(optional.first_keys(query)),
      width(pad(extents.depth, kColumnPad)),
      queries(pad(extents.queries, kRowPad)),
      keys(pad(extents.keys, kColumnPad)) {}

void Problem::take_sharing_heads_as_queries() {
  if (extents.queries != 1 || attrs.causal) return;
  const int64_t sharing = k.sharing;
  extents.heads /= sharing;
  extents.queries = sharing;
  queries = pad(sharing, kRowPad);
  for (Rows* rows : {&q, &whole_q}) {
    rows->row = rows->head;
    rows->head *= sharing;
  }
  k.sharing = v.sharing = 1;
  first_keys.step[1] = 0;
}

int64_t Problem::fill_mask(const KernelArgs& args, int64_t b, float* mask) const {
  const void* data = optional.keys ? args.inputs[optional.keys] : nullptr;
  int64_t used = 0;
  for (int64_t key = 0; key < keys; ++key) {
    const bool kept = key < extents.keys && filter.keeps(data, b, key);
    mask[key] = kept ? 0 : -std::numeric_limits<float>::infinity();
    if (kept) used = key + 1;
  }
  return used;
}

void Problem::fill_starts(const KernelArgs& args, int64_t b, int32_t* to) const {
  QueryStarts starts = first_keys;
  starts.data = args.in<int32_t>(optional.starts);
  for (int64_t i = 0; i < extents.queries; ++i) to[i] = starts.of(b, i);
  std::fill(to + extents.queries, to + queries, 0);
}

}  // namespace tidemark::attention
