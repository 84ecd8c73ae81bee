// How a GPU partitions a matrix (rows, columns) to sum its rows or to apply per-column values.
// An NHWC tensor is the matrix (N*H*W, C).
//
// A block of kThreads threads takes a tile of columns and a stretch of rows. Its threads lie
// side by side over vectors of `width` columns, then over rows. Each stretch yields a partial
// sum in the workspace; the partial sums are added in order. The partition depends on the shape
// alone, not on the GPU, so every GPU computes the same sums in the same order.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/core/host_device.h"

namespace tidemark {

struct ColumnTiles {
  static constexpr int kThreads = 256;
  static constexpr int64_t kBlocks = 1024;  // enough to fill any current GPU
  static constexpr int64_t kMaxRows = 256;  // rows that one thread sums in float
  static constexpr int64_t kLeastRows = 8;  // rows that justify a thread

  // `matrices`: how many matrices of this shape are processed at once. `vectors_fit`: four
  // columns of a row can be read as one vector, if the number of columns allows it. REQUIRES:
  // rows, columns, matrices > 0.
  ColumnTiles(int64_t row_count, int64_t column_count, int64_t matrices = 1,
              bool vectors_fit = true)
      : rows(row_count), columns(column_count) {
    width = vectors_fit && columns % 4 == 0 ? 4 : 1;
    const int64_t vectors = columns / width;
    while (lanes < 32 && lanes < vectors) lanes *= 2;
    tiles = (vectors + lanes - 1) / lanes;
    const int64_t side = kThreads / lanes;  // rows that a block takes at a time
    const int64_t wanted = std::max<int64_t>(1, kBlocks / (tiles * matrices));
    stretches = std::min(wanted, (rows + side * kLeastRows - 1) / (side * kLeastRows));
    stretches = std::max(stretches, (rows + side * kMaxRows - 1) / (side * kMaxRows));
    stretch_rows = (rows + stretches - 1) / stretches;
    stretches = (rows + stretch_rows - 1) / stretch_rows;
  }

  int64_t blocks() const { return tiles * stretches; }

  // Where thread `thread` of block `block` works. The thread has no work if column >= columns.
  struct Place {
    int64_t stretch, column, first_row, end_row;
    int row_step, lane, row_lane;
  };
  TIDEMARK_HOST_DEVICE Place place(int64_t block, int thread) const {
    Place p;
    p.stretch = block / tiles;
    p.lane = thread % lanes;
    p.row_lane = thread / lanes;
    p.row_step = kThreads / lanes;
    p.column = ((block % tiles) * lanes + p.lane) * width;
    p.first_row = p.stretch * stretch_rows + p.row_lane;
    p.end_row = (p.stretch + 1) * stretch_rows;
    if (p.end_row > rows) p.end_row = rows;
    return p;
  }

  int64_t rows, columns;
  int width = 1;  // columns that a thread takes as one vector: 1 or 4
  int lanes = 1;  // threads side by side, a power of two, at most 32
  int64_t tiles, stretches, stretch_rows;
};

}  // namespace tidemark
