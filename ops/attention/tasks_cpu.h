// Shared by attention's forward and backward kernels on the CPU: packing into padded tiles
// (tile_loops.h; always float32, whatever the tensors' type), the mask, and tasks that each
// have their own part of the workspace.
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

// Copies rows of `depth` elements, times `factor`, and pads with zeros to (padded_rows, width).
void pack(const FloatInput& from, int64_t step, int64_t rows, int64_t depth,
          int64_t padded_rows, int64_t width, float factor, float* to);
// The same transposed, to (depth, width): zeros from column `rows` on.
void pack_transposed(const FloatInput& from, int64_t step, int64_t rows, int64_t depth,
                     int64_t width, float* to);
// Writes the rows of a tile, times `factor`, back to the tensor.
void unpack(const float* from, int64_t width, int64_t rows, int64_t depth, float factor,
            const FloatOutput& to, int64_t step);

// Hands out parts of a task's workspace. Without memory, it only counts bytes.
class Scratch {
 public:
  explicit Scratch(std::byte* memory = nullptr) : memory_(reinterpret_cast<float*>(memory)) {}
  float* take(int64_t floats) {
    float* part = memory_ ? memory_ + used_ : nullptr;
    used_ += pad(floats, 16);
    return part;
  }
  int32_t* take_integers(int64_t count) { return reinterpret_cast<int32_t*>(take(count)); }
  Bytes used() const { return size_of(DType::kFloat32) * used_; }

 private:
  float* memory_;
  int64_t used_ = 0;
};

// The signature of a call, as the tasks use it.
struct Problem {
  // Inputs `at`, `at` + 1, `at` + 2 are q, k and v. The optional ones come from `optional_at`
  // on.
  Problem(const OpQuery& query, size_t at, size_t optional_at);

  // For one query, as in generating text: the heads that share keys become the queries of one
  // head, so that a task reads their keys and values once. The results' bits and places stay.
  void take_sharing_heads_as_queries();
  // With few queries, packing values would take longer than multiplying them.
  bool reads_values_in_place() const {
    return extents.queries <= kRowPad && dtype == DType::kFloat32 && width == extents.depth;
  }

  // Fills a row of `keys` elements with 0 where the key exists and -infinity elsewhere. Returns
  // one past the last existing key; 0 if there is none.
  int64_t fill_mask(const KernelArgs& args, int64_t b, float* mask) const;
  // Fills in the first key that each of the `queries` sees; padded queries see all.
  void fill_starts(const KernelArgs& args, int64_t b, int32_t* to) const;
  // The first key of the first tile that any query of a tile sees, by their starts, which may
  // be null.
  static int64_t first_tile(const int32_t* tile_starts, int64_t tile_queries) {
    if (!tile_starts) return 0;
    return *std::min_element(tile_starts, tile_starts + tile_queries) / kTileKeys * kTileKeys;
  }
  // Padded columns of the tile that begins at `first_key`.
  int64_t columns(int64_t first_key) const { return std::min(kTileKeys, keys - first_key); }
  // Keys in that tile, without padding.
  int64_t keys_in(int64_t first_key) const {
    return std::min(kTileKeys, extents.keys - first_key);
  }
  // `tile_starts`: of the tile's queries, or null.
  Tile tile(int64_t first_query, int64_t rows, int64_t first_key, int64_t tile_columns,
            int64_t stride, const int32_t* tile_starts) const {
    Tile tile{rows, tile_columns, stride};
    tile.starts = tile_starts;
    tile.first_key = first_key;
    if (attrs.causal) tile.open = first_query - first_key + 1;
    return tile;
  }
  Dropout dropout(const KernelArgs& args) const {
    return {attrs.dropout, attrs.seed, args.scalars[0], extents.keys};
  }

  AttentionAttrs attrs;
  DType dtype;
  Extents extents;
  Rows q, k, v;
  Rows whole_q, whole_k;  // of gapless q and of gradients of k
  OptionalInputs optional;
  KeyFilter filter;
  QueryStarts first_keys;
  int64_t width, queries, keys;  // depth, queries and keys, padded
};

// Runs task(i, scratch) for all i < count, each with `scratch` bytes of its own.
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
