#include "models/text/tuning/packing.h"

#include <algorithm>
#include <bit>

namespace tidemark {

std::vector<int64_t> first_fit(std::span<const int32_t> sizes, int32_t capacity) {
  // A binary tree, its root at 1: each node has the most space of any bin below it.
  const size_t leaves = std::bit_ceil(std::max<size_t>(1, sizes.size()));
  std::vector<int32_t> space(2 * leaves, capacity);
  std::vector<int64_t> bins;
  bins.reserve(sizes.size());
  for (const int32_t size : sizes) {
    size_t node = 1;
    while (node < leaves) {
      node = 2 * node;
      if (space[node] < size) ++node;
    }
    bins.push_back(static_cast<int64_t>(node - leaves));
    space[node] -= size;
    while (node > 1) {
      node /= 2;
      space[node] = std::max(space[2 * node], space[2 * node + 1]);
    }
  }
  return bins;
}

}  // namespace tidemark
