// Error messages for inputs that do not fit, in one wording: "[conv2d] ... (8, 4, 4, 3) ...".
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "ops/registry/op.h"

namespace tidemark {

// Throws UsageError: "[op] what; inputs (8, 4, 4, 3), (16, 3, 3, 4)".
[[noreturn]] void throw_misfit(const char* op, const OpQuery& query, const std::string& what);

// Checks the number of inputs and the rank of each (kAnyRank: any rank). All must be contiguous
// float32.
inline constexpr size_t kAnyRank = ~size_t{0};
void check_float32(const char* op, const OpQuery& query, std::initializer_list<size_t> ranks);
// The same, except that the inputs in `activations` (bit i: input i) may all be bfloat16
// instead; parameters and statistics stay float32. Returns the activations' type.
DType check_floats(const char* op, const OpQuery& query, std::initializer_list<size_t> ranks,
                   uint32_t activations);
// Throws UsageError unless input i has type `dtype`.
void check_dtype(const char* op, const OpQuery& query, size_t i, DType dtype);
// Returns input i's type. Throws UsageError if it is neither float32 nor bfloat16.
DType check_float(const char* op, const OpQuery& query, size_t i);

inline void check_fits(const char* op, const OpQuery& query, bool fits, const char* what) {
  if (!fits) throw_misfit(op, query, what);
}

// Bytes of all inputs and outputs, each once.
Bytes bytes_moved(const OpQuery& query);

// Output positions along one dimension of a convolution or pooling window, at least 1. Throws
// UsageError if the arguments are invalid or the window does not fit the padded input.
int64_t window_positions(const char* op, const OpQuery& query, int64_t extent, int64_t window,
                         int64_t stride, int64_t padding, int64_t dilation = 1);

}  // namespace tidemark
