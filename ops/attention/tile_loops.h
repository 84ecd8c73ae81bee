// The inner loops of attention on the CPU, over tiles that fit in the first two cache levels.
// They are compiled for several instruction sets; the best one that this processor has is
// chosen once.
//
// Tiles are float32, row-major and padded: rows to kRowPad, columns to kColumnPad. The loops
// therefore need no edge cases.
//
// Threads: any; no state.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/attention/dropout.h"

namespace tidemark::attention {

inline constexpr int64_t kRowPad = 8, kColumnPad = 32;

// A tile of scores or probabilities. Column c is key `first_key` + c.
struct Tile {
  int64_t rows, columns, stride;
  // Columns that row 0 may see; each further row sees one more. If negative, row 0 sees none.
  int64_t open = INT64_MAX / 2;
  const int32_t* starts = nullptr;  // the first key that each row may see; null: 0
  int64_t first_key = 0;
};

// The tile's first row within the matrix of all probabilities, and its first key, a multiple of
// kChunkKeys.
struct DropoutPlace {
  int64_t row, first_key;
};

struct TileLoops {
  // c (m, n) = a b, or c + a b if `add`; b is (k, n). a is (m, k), or (k, m) if `transposed`. m
  // and n are padded; k is not. Reaches about 90 % of the processor's peak; oneDNN's matmul
  // reaches 75 % at these sizes.
  void (*multiply)(int64_t m, int64_t n, int64_t k, const float* a, int64_t a_stride,
                   bool transposed, const float* b, int64_t b_stride, float* c,
                   int64_t c_stride, bool add);
  // Processes the next tile of keys for each query: s becomes e^(s + mask - largest); largest,
  // sum and the output rows so far (of `depth` columns) are updated to match. `mask` has one
  // number for each column, 0 or -infinity.
  void (*softmax)(const Tile& tile, float* s, const float* mask, float* largest, float* sum,
                  float* output, int64_t depth);
  // s becomes e^(s + mask - shift), with one shift per row.
  void (*exponentials)(const Tile& tile, float* s, const float* mask, const float* shift);
  // p becomes M p.
  void (*drop)(const Tile& tile, float* p, const Dropout& dropout, const DropoutPlace& place);
  // Takes P and dp = g v^T: p becomes M p, dp becomes P (M dp - delta), with one delta per row.
  void (*gradient)(const Tile& tile, float* p, float* dp, const float* delta,
                   const Dropout& dropout, const DropoutPlace& place);
};

const TileLoops& tile_loops();

// The loops for every instruction set that this processor has, for tests.
std::vector<TileLoops> all_tile_loops();

}  // namespace tidemark::attention
