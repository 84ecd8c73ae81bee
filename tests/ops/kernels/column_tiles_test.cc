#include "ops/kernels/column_tiles.h"

#include <gtest/gtest.h>

#include <vector>

namespace tidemark {
namespace {

TEST(ColumnTilesTest, EveryElementIsTakenOnce) {
  for (const auto& [rows, columns] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 1}, {1, 5}, {7, 3}, {100, 4}, {3, 64}, {1000, 12}, {513, 130}, {20000, 33}}) {
    SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(columns));
    const ColumnTiles tiles(rows, columns);
    std::vector<int> taken(static_cast<size_t>(rows * columns));
    for (int64_t block = 0; block < tiles.blocks(); ++block) {
      for (int thread = 0; thread < ColumnTiles::kThreads; ++thread) {
        const auto place = tiles.place(block, thread);
        if (place.column >= columns) continue;
        EXPECT_LT(place.stretch, tiles.stretches);
        for (int64_t r = place.first_row; r < place.end_row; r += place.row_step) {
          for (int i = 0; i < tiles.width; ++i) {
            ++taken[static_cast<size_t>(r * columns + place.column + i)];
          }
        }
      }
    }
    for (int count : taken) ASSERT_EQ(count, 1);
  }
}

// Batch norm and sums of ResNet-50's activations at batch 256.
TEST(ColumnTilesTest, LargeMatricesFillAGpuAndThreadsSumUpFewRows) {
  for (const auto& [rows, columns] :
       std::vector<std::pair<int64_t, int64_t>>{{256 * 112 * 112, 64},
                                                {256 * 56 * 56, 256},
                                                {256 * 14 * 14, 1024},
                                                {256 * 7 * 7, 2048},
                                                {100'000'000, 1}}) {
    SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(columns));
    const ColumnTiles tiles(rows, columns);
    EXPECT_GE(tiles.blocks(), 512);
    EXPECT_LE(tiles.stretch_rows / (ColumnTiles::kThreads / tiles.lanes),
              ColumnTiles::kMaxRows);
  }
}

TEST(ColumnTilesTest, VectorsAreTakenOnlyWhereTheyFit) {
  EXPECT_EQ(ColumnTiles(10, 8).width, 4);
  EXPECT_EQ(ColumnTiles(10, 6).width, 1);
  EXPECT_EQ(ColumnTiles(10, 8, 1, false).width, 1);
}

}  // namespace
}  // namespace tidemark
