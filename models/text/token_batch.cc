#include "models/text/token_batch.h"

#include <cstddef>

namespace tidemark {

TokenBatch padded_batch(int64_t rows, int64_t length, int64_t pad) {
  const auto elements = static_cast<size_t>(rows * length);
  TokenBatch batch;
  batch.rows = rows;
  batch.length = length;
  batch.tokens.assign(elements, pad);
  batch.segments.assign(elements, 0);
  batch.positions.resize(elements);
  batch.mask.assign(elements, 0);
  batch.lengths.assign(static_cast<size_t>(rows), 0);
  for (size_t i = 0; i < elements; ++i) {
    batch.positions[i] = static_cast<int64_t>(i) % length;
  }
  return batch;
}

}  // namespace tidemark
