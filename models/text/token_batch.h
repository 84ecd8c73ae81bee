// A batch of token sequences, in the form networks take: row-major, padded to one length.
#pragma once

#include <cstdint>
#include <vector>

namespace tidemark {

// The label of a position that the loss ignores.
inline constexpr int64_t kIgnoreLabel = -100;

struct TokenBatch {
  int64_t rows = 0;                // N
  int64_t length = 0;              // L
  std::vector<int64_t> tokens;     // (N, L)
  std::vector<int64_t> segments;   // (N, L): 0, or 1 in the second part of a pair
  std::vector<int64_t> positions;  // (N, L): 0 to L - 1 in each row
  std::vector<float> mask;         // (N, L): 1 for a token, 0 for padding
  std::vector<int64_t> lengths;    // (N): tokens that are not padding
};

// A batch of `rows` sequences of `length`, filled with padding; positions are set.
TokenBatch padded_batch(int64_t rows, int64_t length, int64_t pad);

}  // namespace tidemark
