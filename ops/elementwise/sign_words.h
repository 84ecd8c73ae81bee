// The signs of 32 elements as one word (relu.h), for loops compiled for several instruction
// sets.
#pragma once

#include <cstdint>

#include "ops/elementwise/relu.h"
#include "ops/kernels/instruction_sets.h"

namespace tidemark {

// Of the first `count` elements, at most kSignsPerWord. The loop over a whole word has a
// constant number of iterations, so that it is vectorised.
template <class T>
TIDEMARK_INLINE uint32_t sign_word(const T* x, int64_t count) {
  uint32_t bits = 0;
  if (count == kSignsPerWord) {
    for (int j = 0; j < kSignsPerWord; ++j) bits |= x[j] > 0 ? uint32_t{1} << j : 0;
  } else {
    for (int j = 0; j < count; ++j) bits |= x[j] > 0 ? uint32_t{1} << j : 0;
  }
  return bits;
}

}  // namespace tidemark
