// A task is a head, or a part of its queries. Either way it computes whole rows of
// probabilities.
#include <cmath>
#include <limits>

#include "ops/attention/tasks_cpu.h"

namespace tidemark::attention {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Parts of a task's workspace.
struct Buffers {
  Buffers(const Problem& p, Scratch& scratch)
      : score_stride(p.attrs.materialised() ? p.keys : std::min(kTileKeys, p.keys)),
        mask(scratch.take(p.keys)),
        starts(p.optional.starts ? scratch.take_integers(p.queries) : nullptr),
        keys(scratch.take(p.extents.depth * p.keys)),
        values(p.reads_values_in_place() ? nullptr : scratch.take(p.keys * p.width)),
        q(scratch.take(kTileQueries * p.width)),
        scores(scratch.take(kTileQueries * score_stride)),
        output(scratch.take(kTileQueries * p.width)),
        largest(scratch.take(kTileQueries)),
        sum(scratch.take(kTileQueries)) {}

  int64_t score_stride;
  float* mask;
  int32_t* starts;  // null: all queries see key 0
  float* keys;      // each tile transposed
  float* values;    // each tile as it is; null: they are read where they are
  float *q, *scores, *output, *largest, *sum;
};

class Forward {
 public:
  Forward(const Problem& problem, const KernelArgs& args, int64_t parts)
      : p_(problem), args_(args), parts_(parts), dropout_(p_.dropout(args)) {}

  void operator()(int64_t task, Scratch scratch) const {
    const int64_t head = task / parts_;
    const int64_t b = head / p_.extents.heads, h = head % p_.extents.heads;
    const Buffers to(p_, scratch);
    const int64_t used = p_.fill_mask(args_, b, to.mask);
    if (to.starts) p_.fill_starts(args_, b, to.starts);
    const FloatInput k = float_input(args_, 1) + p_.k.at(b, h, 0);
    const FloatInput v = float_input(args_, 2) + p_.v.at(b, h, 0);
    const int64_t depth = p_.extents.depth;
    for (int64_t key = 0; key < used; key += kTileKeys) {
      const int64_t rows = p_.keys_in(key), columns = p_.columns(key);
      pack_transposed(k + key * p_.k.row, p_.k.row, rows, depth, columns,
                      to.keys + key * depth);
      if (to.values) {
        pack(v + key * p_.v.row, p_.v.row, rows, depth, columns, p_.width, 1,
             to.values + key * p_.width);
      }
    }
    const int64_t query_tiles = tiles(p_.extents.queries, kTileQueries);
    for (int64_t tile = task % parts_; tile < query_tiles; tile += parts_) {
      query_tile(b, h, tile * kTileQueries, used, to);
    }
  }

 private:
  // A tile of queries of one head.
  struct QueryTile {
    int64_t b, h, query, queries;
    int64_t rows;  // queries, padded
    int64_t row;   // index of the first query among the queries of all heads
    int64_t first_key, used;
    const int32_t* starts;  // null: all see key 0
  };

  void query_tile(int64_t b, int64_t h, int64_t query, int64_t used, const Buffers& to) const {
    const int64_t queries = std::min(p_.extents.queries - query, kTileQueries);
    const int64_t rows = pad(queries, kRowPad);
    if (p_.attrs.causal) used = std::min(used, query + queries);
    pack(float_input(args_, 0) + p_.q.at(b, h, query), p_.q.row, queries, p_.extents.depth,
         rows, p_.width, static_cast<float>(p_.attrs.scale), to.q);
    std::fill_n(to.output, rows * p_.width, 0.0F);
    std::fill_n(to.largest, rows, -kInfinity);
    std::fill_n(to.sum, rows, 0.0F);
    const int64_t row = (b * p_.extents.heads + h) * p_.extents.queries + query;
    const int32_t* starts = to.starts ? to.starts + query : nullptr;
    const int64_t first_key = Problem::first_tile(starts, queries);
    const QueryTile tile{b, h, query, queries, rows, row, first_key, used, starts};
    if (p_.attrs.materialised()) {
      with_probabilities(tile, to);
    } else {
      with_running_sums(tile, to);
    }
    const FloatOutput y = float_output(args_, 0) + p_.whole_q.at(b, h, query);
    unpack(to.output, p_.width, queries, p_.extents.depth, 1, y, p_.whole_q.row);
  }

  void multiply_keys(int64_t rows, int64_t key, const Buffers& to, float* scores) const {
    loops_.multiply(rows, p_.columns(key), p_.extents.depth, to.q, p_.width, false,
                    to.keys + key * p_.extents.depth, p_.columns(key), scores, to.score_stride,
                    false);
  }
  void multiply_values(const QueryTile& at, int64_t key, const float* p,
                       const Buffers& to) const {
    const float* values =
        to.values ? to.values + key * p_.width : args_.in<float>(2) + p_.v.at(at.b, at.h, key);
    loops_.multiply(at.rows, p_.width, to.values ? p_.columns(key) : p_.keys_in(key), p,
                    to.score_stride, false, values, to.values ? p_.width : p_.v.row, to.output,
                    p_.width, true);
  }
  // 1 / the sum of a row's exponentials; 0 if it has no keys.
  static float inverse_sum(const Buffers& to, int64_t r) {
    return to.largest[r] == -kInfinity ? 0 : 1 / to.sum[r];
  }

  void with_running_sums(const QueryTile& at, const Buffers& to) const {
    for (int64_t key = at.first_key; key < at.used; key += kTileKeys) {
      const Tile tile =
          p_.tile(at.query, at.queries, key, p_.columns(key), to.score_stride, at.starts);
      multiply_keys(at.rows, key, to, to.scores);
      loops_.softmax(tile, to.scores, to.mask + key, to.largest, to.sum, to.output, p_.width);
      if (dropout_.active()) loops_.drop(tile, to.scores, dropout_, {at.row, key});
      multiply_values(at, key, to.scores, to);
    }
    float* log_sum = args_.out<float>(1) + at.row;
    for (int64_t r = 0; r < at.queries; ++r) {
      const float share = inverse_sum(to, r);
      for (int64_t d = 0; d < p_.width; ++d) to.output[r * p_.width + d] *= share;
      log_sum[r] =
          to.largest[r] == -kInfinity ? kInfinity : to.largest[r] + std::log(to.sum[r]);
    }
  }

  void with_probabilities(const QueryTile& at, const Buffers& to) const {
    const int64_t keys = p_.extents.keys;
    const int64_t first = std::min(at.first_key, p_.keys);
    const int64_t end = std::max(first, std::min(pad(at.used, kTileKeys), p_.keys));
    const Tile tile =
        p_.tile(at.query, at.queries, first, end - first, to.score_stride, at.starts);
    for (int64_t key = first; key < at.used; key += kTileKeys) {
      multiply_keys(at.rows, key, to, to.scores + key);
    }
    loops_.softmax(tile, to.scores + first, to.mask + first, to.largest, to.sum, to.output,
                   p_.width);
    const int64_t from = std::min(first, keys), upto = std::min(end, keys);
    for (int64_t r = 0; r < at.queries; ++r) {
      const float share = inverse_sum(to, r);
      float* p = to.scores + r * to.score_stride;
      for (int64_t c = first; c < end; ++c) p[c] *= share;
      const FloatOutput saved = float_output(args_, 1) + (at.row + r) * keys;
      for (int64_t c = 0; c < from; ++c) saved.set(c, 0);
      unpack(p + from, keys, 1, upto - from, 1, saved + from, keys);
      for (int64_t c = upto; c < keys; ++c) saved.set(c, 0);
    }
    if (dropout_.active()) loops_.drop(tile, to.scores + first, dropout_, {at.row, first});
    for (int64_t key = first; key < at.used; key += kTileKeys) {
      multiply_values(at, key, to.scores + key, to);
    }
  }

  const Problem& p_;
  const KernelArgs& args_;
  int64_t parts_;
  Dropout dropout_;
  const TileLoops& loops_ = tile_loops();
};

}  // namespace

PreparedKernel prepare_attention_cpu(const OpQuery& query) {
  Problem problem(query, 0, 3);
  problem.take_sharing_heads_as_queries();
  const int64_t heads = problem.extents.all_heads();
  // If there are fewer heads than threads, the queries of each head are shared out.
  const int64_t parts =
      std::min(tiles(query.threads, heads), tiles(problem.extents.queries, kTileQueries));
  Scratch scratch;
  const Buffers counted(problem, scratch);
  return run_tasks(heads * std::max<int64_t>(parts, 1), query.threads, scratch.used(),
                   [=](const KernelArgs& args) {
                     return Forward(problem, args, std::max<int64_t>(parts, 1));
                   });
}

}  // namespace tidemark::attention
