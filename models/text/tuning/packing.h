// Items into bins, each into the first bin with space for it ("first fit").
//
// Source: D. S. Johnson, "Near-optimal bin packing algorithms", 1973; by a tree over the bins,
// in O(n log n).
//
// Pure functions; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tidemark {

// The bin of each item; bins are numbered from 0 without gaps. Takes 40 bytes an item while it
// runs. REQUIRES: sizes are from 1 to `capacity`.
std::vector<int64_t> first_fit(std::span<const int32_t> sizes, int32_t capacity);

}  // namespace tidemark
