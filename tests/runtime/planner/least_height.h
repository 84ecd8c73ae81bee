// The least height of a few buffers, by trying everything.
//
// Threads: functions without state.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "runtime/planner/lifetimes.h"
#include "runtime/planner/roam/leaf_solver.h"
#include "runtime/planner/validator.h"

namespace tidemark::planner {

// Buffers that are slid down rest on each other, so one order of stacking gives the least
// height.
inline Bytes least_height(const std::vector<Buffer>& buffers) {
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  Bytes least(INT64_MAX);
  do {
    Offsets offsets(buffers.size());
    for (size_t k = 0; k < order.size(); ++k) {
      for (size_t below = 0; below < k; ++below) {
        const Buffer &x = buffers[order[k]], &y = buffers[order[below]];
        if (x.begin < y.end && y.begin < x.end) {
          offsets[order[k]] = std::max(offsets[order[k]], offsets[order[below]] + y.size);
        }
      }
    }
    least = std::min(least, height(buffers, offsets));
  } while (std::next_permutation(order.begin(), order.end()));
  return least;
}

}  // namespace tidemark::planner

namespace tidemark::planner::roam {

// Over all orders of placing, each buffer at its lowest place; INT64_MAX if none is below the
// ceilings.
inline int64_t least_height(const LayoutLeaf& leaf) {
  std::vector<size_t> order(leaf.buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  int64_t least = INT64_MAX;
  do {
    Offsets offsets(order.size());
    std::vector<bool> placed(order.size(), false);
    place_around(leaf.buffers, order, placed, offsets);
    bool below = true;
    for (const size_t i : order) {
      below = below && offsets[i] + leaf.buffers[i].size <= Offset() + leaf.ceilings[i];
    }
    if (below) least = std::min(least, height(leaf.buffers, offsets).count());
  } while (std::next_permutation(order.begin(), order.end()));
  return least;
}

// Three to six buffers. The first half lives in the middle, below the sum of their sizes.
inline LayoutLeaf random_leaf(std::mt19937& random) {
  LayoutLeaf leaf;
  Bytes stacked;
  const size_t count = 3 + random() % 4;
  for (size_t i = 0; i < count; ++i) {
    const auto begin = static_cast<int64_t>(random() % 6);
    const bool low = i < count / 2;
    leaf.buffers.push_back(
        {low ? begin % 3 : begin,
         low ? 4 + begin % 3 : begin + 1 + static_cast<int64_t>(random() % 4),
         Bytes(1 + static_cast<int64_t>(random() % 6))});
    if (low) stacked += leaf.buffers.back().size;
  }
  for (size_t i = 0; i < count; ++i) {
    leaf.ceilings.push_back(i < count / 2 ? stacked : Bytes(INT64_MAX));
  }
  return leaf;
}

// Of random leaves, some of which must be higher than their load.
inline void expect_least_heights(const LeafSolvers& solvers, const Limits& limits) {
  std::mt19937 random(7);
  int lifted = 0;
  for (int round = 0; round < 300; ++round) {
    const LayoutLeaf leaf = random_leaf(random);
    const Offsets offsets = solvers.layout(leaf, limits);
    const Bytes top = height(leaf.buffers, offsets);
    EXPECT_THAT(layout_violations(leaf.buffers, offsets, top), ::testing::IsEmpty()) << round;
    for (size_t i = 0; i < offsets.size(); ++i) {
      EXPECT_LE(offsets[i] + leaf.buffers[i].size, Offset() + leaf.ceilings[i]) << round;
    }
    EXPECT_EQ(top.count(), least_height(leaf)) << round;
    lifted += top > max_load(leaf.buffers) ? 1 : 0;
  }
  EXPECT_GT(lifted, 0);
}

}  // namespace tidemark::planner::roam
