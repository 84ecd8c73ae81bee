// A task is a head. It takes one tile of keys after the other, each with all tiles of queries.
// When a tile of keys is done, the gradients of its keys and values are complete; those of the
// queries are still growing.
#include "ops/attention/tasks_cpu.h"

namespace tidemark::attention {
namespace {

// Parts of a task's workspace: for all queries, then for one tile of keys.
struct Buffers {
  Buffers(const Problem& of, Scratch& scratch)
      : tile_columns(std::min(kTileKeys, of.keys)),
        mask(scratch.take(of.keys)),
        starts(of.optional.starts ? scratch.take_integers(of.queries) : nullptr),
        q(scratch.take(of.queries * of.width)),
        g(scratch.take(of.queries * of.width)),
        dq(scratch.take(of.queries * of.width)),
        log_sum(scratch.take(of.queries)),
        delta(scratch.take(of.queries)),
        keys(scratch.take(tile_columns * of.width)),
        keys_transposed(scratch.take(of.extents.depth * tile_columns)),
        values_transposed(scratch.take(of.extents.depth * tile_columns)),
        dk(scratch.take(tile_columns * of.width)),
        dv(scratch.take(tile_columns * of.width)),
        p(scratch.take(kTileQueries * tile_columns)),
        dp(scratch.take(kTileQueries * tile_columns)) {}

  int64_t tile_columns;
  float* mask;
  int32_t* starts;  // null: all queries see key 0
  float *q, *g, *dq, *log_sum, *delta;
  float *keys, *keys_transposed, *values_transposed, *dk, *dv, *p, *dp;
};

constexpr size_t kG = 0, kQ = 1, kK = 2, kV = 3, kY = 4, kSaved = 5, kOptional = 6;

class Backward {
 public:
  Backward(const Problem& problem, const KernelArgs& args)
      : p_(problem), args_(args), dropout_(p_.dropout(args)) {}

  void operator()(int64_t head, Scratch scratch) const {
    const int64_t b = head / p_.extents.heads, h = head % p_.extents.heads;
    const Buffers to(p_, scratch);
    const int64_t used = p_.fill_mask(args_, b, to.mask);
    if (to.starts) p_.fill_starts(args_, b, to.starts);
    pack_queries(b, h, to);
    for (int64_t key = 0; key < p_.extents.keys; key += kTileKeys) {
      const FloatOutput dk = float_output(args_, 1) + p_.whole_k.at(b, h, key);
      const FloatOutput dv = float_output(args_, 2) + p_.whole_k.at(b, h, key);
      std::fill_n(to.dk, to.tile_columns * p_.width, 0.0F);
      std::fill_n(to.dv, to.tile_columns * p_.width, 0.0F);
      if (key < used) key_tile(b, h, key, to);
      unpack(to.dk, p_.width, p_.keys_in(key), p_.extents.depth, 1, dk, p_.whole_k.row);
      unpack(to.dv, p_.width, p_.keys_in(key), p_.extents.depth, 1, dv, p_.whole_k.row);
    }
    unpack(to.dq, p_.width, p_.extents.queries, p_.extents.depth,
           static_cast<float>(p_.attrs.scale), float_output(args_, 0) + p_.whole_q.at(b, h, 0),
           p_.whole_q.row);
  }

 private:
  void pack_queries(int64_t b, int64_t h, const Buffers& to) const {
    const auto& [batch, heads, queries, keys, depth] = p_.extents;
    const FloatInput g = float_input(args_, kG) + p_.whole_q.at(b, h, 0);
    const FloatInput y = float_input(args_, kY) + p_.whole_q.at(b, h, 0);
    pack(float_input(args_, kQ) + p_.q.at(b, h, 0), p_.q.row, queries, depth, p_.queries,
         p_.width, static_cast<float>(p_.attrs.scale), to.q);
    pack(g, p_.whole_q.row, queries, depth, p_.queries, p_.width, 1, to.g);
    std::fill_n(to.dq, p_.queries * p_.width, 0.0F);
    // A padded query has e^(0 - 0) = 1 times a gradient of 0, which adds nothing.
    std::fill_n(to.log_sum, p_.queries, 0.0F);
    std::fill_n(to.delta, p_.queries, 0.0F);
    if (!p_.attrs.materialised()) {
      std::copy_n(args_.in<float>(kSaved) + (b * heads + h) * queries, queries, to.log_sum);
    }
    for (int64_t r = 0; r < queries; ++r) {
      double sum = 0;
      const int64_t at = r * p_.whole_q.row;
      for (int64_t d = 0; d < depth; ++d) sum += double{g[at + d]} * y[at + d];
      to.delta[r] = static_cast<float>(sum);
    }
  }

  void key_tile(int64_t b, int64_t h, int64_t key, const Buffers& to) const {
    const int64_t keys = p_.keys_in(key), columns = p_.columns(key), depth = p_.extents.depth;
    const FloatInput k = float_input(args_, kK) + p_.k.at(b, h, key);
    const FloatInput v = float_input(args_, kV) + p_.v.at(b, h, key);
    pack(k, p_.k.row, keys, depth, columns, p_.width, 1, to.keys);
    pack_transposed(v, p_.v.row, keys, depth, columns, to.values_transposed);
    if (!p_.attrs.materialised()) {
      pack_transposed(k, p_.k.row, keys, depth, columns, to.keys_transposed);
    }
    // Queries before the tile's first key do not see that key.
    const int64_t first = p_.attrs.causal ? key / kTileQueries * kTileQueries : 0;
    for (int64_t query = first; query < p_.extents.queries; query += kTileQueries) {
      const int64_t rows = std::min(p_.queries - query, kTileQueries);
      const int32_t* starts = to.starts ? to.starts + query : nullptr;
      const int64_t queries = std::min(p_.extents.queries - query, kTileQueries);
      if (p_.first_tile(starts, queries) > key) continue;  // none sees these keys
      const Tile tile = p_.tile(query, rows, key, columns, columns, starts);
      const int64_t row = (b * p_.extents.heads + h) * p_.extents.queries + query;
      probabilities(tile, row, query, key, to);
      const float* q = to.q + query * p_.width;
      const float* g = to.g + query * p_.width;
      loops_.multiply(rows, columns, depth, g, p_.width, false, to.values_transposed, columns,
                      to.dp, columns, false);
      loops_.gradient(tile, to.p, to.dp, to.delta + query, dropout_, {row, key});
      loops_.multiply(columns, p_.width, rows, to.p, columns, true, g, p_.width, to.dv,
                      p_.width, true);
      loops_.multiply(columns, p_.width, rows, to.dp, columns, true, q, p_.width, to.dk,
                      p_.width, true);
      loops_.multiply(rows, p_.width, columns, to.dp, columns, false, to.keys, p_.width,
                      to.dq + query * p_.width, p_.width, true);
    }
  }

  void probabilities(const Tile& tile, int64_t row, int64_t query, int64_t key,
                     const Buffers& to) const {
    if (p_.attrs.materialised()) {
      const int64_t rows = std::min(p_.extents.queries - query, kTileQueries);
      pack(float_input(args_, kSaved) + row * p_.extents.keys + key, p_.extents.keys, rows,
           p_.keys_in(key), tile.rows, tile.columns, 1, to.p);
      return;
    }
    loops_.multiply(tile.rows, tile.columns, p_.extents.depth, to.q + query * p_.width,
                    p_.width, false, to.keys_transposed, tile.columns, to.p, tile.columns,
                    false);
    loops_.exponentials(tile, to.p, to.mask + key, to.log_sum + query);
  }

  const Problem& p_;
  const KernelArgs& args_;
  Dropout dropout_;
  const TileLoops& loops_ = tile_loops();
};

}  // namespace

PreparedKernel prepare_attention_grad_cpu(const OpQuery& query) {
  const Problem problem(query, kQ, kOptional);
  Scratch scratch;
  const Buffers counted(problem, scratch);
  return run_tasks(problem.extents.all_heads(), query.threads, scratch.used(),
                   [=](const KernelArgs& args) { return Backward(problem, args); });
}

}  // namespace tidemark::attention
