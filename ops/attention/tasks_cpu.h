// What attention's forward and backward kernels on the CPU share: packing into padded tiles
// (tile_loops.h; float32 whatever tensors are), the mask, and tasks that each have their own
// part of the workspace.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "ops/attention/kernels.h"
#include "ops/attention/tile_loops.h"
#include "ops/kernels/any_float.h"
#include "ops/kernels/parallel_for.h"

namespace tidemark::attention {

inline constexpr int64_t kTileQueries = 64;
inline constexpr int64_t kTileKeys = 128;  // a multiple of kChunkKeys

inline int64_t pad(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
inline int64_t tiles(int64_t n, int64_t each) { return (n + each - 1) / each; }

// Rows of `depth` elements, times `factor`, and zeros up to (padded_rows, width).
void pack(const FloatInput& from, int64_t step, int64_t rows, int64_t depth,
          int64_t padded_rows, int64_t width, float factor, float* to);
// The same transposed: (depth, width), zeros from column `rows` on.
void pack_transposed(const FloatInput& from, int64_t step, int64_t rows, int64_t depth,
                     int64_t width, float* to);
// Rows of a tile, times `factor`, to where they belong.
void unpack(const float* from, int64_t width, int64_t rows, int64_t depth, float factor,
            const FloatOutput& to, int64_t step);

// Hands out parts of a task's workspace; without memory it only counts.
class Scratch {
 public:
  explicit Scratch(std::byte* memory = nullptr) : memory_(reinterpret_cast<float*>(memory)) {}
  float* take(int64_t floats) {
    float* part = memory_ ? memory_ + used_ : nullptr;
    used_ += pad(floats, 16);
    return part;
  }
  Bytes used() const { return size_of(DType::kFloat32) * used_; }

 private:
  float* memory_;
  int64_t used_ = 0;
};

// A call's signature, as the tasks see it.
struct Problem {
  // Input `at` is q, followed by k and v; input `keys_at`, if there is one, says which keys
  // there are.
  Problem(const OpQuery& query, size_t at, size_t keys_at);

  // Fills a row of `keys` with 0 where there is a key, -infinity elsewhere; the number of keys
  // up to the last that there is.
  int64_t fill_mask(const KernelArgs& args, int64_t b, float* mask) const;
  // Padded columns of the tile of keys that begins there.
  int64_t columns(int64_t first_key) const { return std::min(kTileKeys, keys - first_key); }
  // Keys in it.
  int64_t keys_in(int64_t first_key) const {
    return std::min(kTileKeys, extents.keys - first_key);
  }
  Tile tile(int64_t first_query, int64_t rows, int64_t first_key, int64_t tile_columns,
            int64_t stride) const {
    Tile tile{rows, tile_columns, stride};
    if (attrs.causal) tile.open = first_query - first_key + 1;
    return tile;
  }
  Dropout dropout(const KernelArgs& args) const {
    return {attrs.dropout, attrs.seed, args.scalars[0], extents.keys};
  }

  AttentionAttrs attrs;
  Extents extents;
  Rows q, k, v;
  Rows whole_q, whole_k;  // of gapless tensors of q's and k's shapes
  size_t keys_input;      // 0: all keys are there
  KeyFilter filter;
  int64_t width, queries, keys;  // depth, queries and keys, padded
};

// task(i, scratch) for all i, each with `scratch` bytes of its own.
template <class MakeTask>
PreparedKernel run_tasks(int64_t count, int threads, Bytes scratch, const MakeTask& make) {
  const int64_t slots = std::min<int64_t>(std::max(threads, 1), count);
  const Bytes each = align_up(scratch);
  return {each * slots, [=](const KernelArgs& args) {
            const auto task = make(args);
            parallel_tasks(slots, kSerialElements, [&](int64_t slot) {
              std::byte* memory = args.workspace + slot * each.count();
              for (int64_t i = slot; i < count; i += slots) task(i, Scratch(memory));
            });
          }};
}

}  // namespace tidemark::attention
