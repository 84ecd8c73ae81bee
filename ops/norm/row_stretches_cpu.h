// Sums over the rows of a matrix for the CPU: one or more numbers per column, such as the
// gradients of a normalisation's parameters.
//
// The rows are split into stretches that depend on the shape alone. Within a stretch, numbers
// are summed in float over blocks of rows, and in double over blocks; stretches are added in
// order. The sums are therefore the same for any number of threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "ops/kernels/parallel_for.h"
#include "runtime/core/shape.h"
#include "runtime/core/units.h"

namespace tidemark::norm {

class RowStretches {
 public:
  // `sums`: how many numbers per column.
  RowStretches(const Shape& x, int64_t sums)
      : rows_(x.elements() / x.back()),
        columns_(x.back()),
        sums_(sums),
        rows_each_(std::max(kLeastRows, (rows_ + kMaxStretches - 1) / kMaxStretches)),
        count_((rows_ + rows_each_ - 1) / rows_each_),
        stride_(align_up(Bytes(sums * columns_ * 12), Bytes(64)).count()) {}

  // Of each stretch: `sums` rows of double, and as many of float for the current block.
  Bytes workspace() const { return Bytes(count_ * stride_); }

  // Calls block(first, rows, sums) for ranges of rows, from several threads. It overwrites
  // `sums`, one row of `columns` floats for each number. Then writes the totals to `results`.
  template <class Block>
  void run(std::byte* workspace, std::span<float* const> results, const Block& block) const {
    const int64_t numbers = sums_ * columns_;
    parallel_tasks(count_, rows_each_ * columns_, [&](int64_t stretch) {
      double* const totals = totals_of(workspace, stretch);
      float* const sums = reinterpret_cast<float*>(totals + numbers);
      std::memset(totals, 0, static_cast<size_t>(numbers) * sizeof(double));
      const int64_t end = std::min(rows_, (stretch + 1) * rows_each_);
      for (int64_t row = stretch * rows_each_; row < end; row += kBlockRows) {
        block(row, std::min(kBlockRows, end - row), sums);
        for (int64_t i = 0; i < numbers; ++i) totals[i] += sums[i];
      }
    });
    parallel_tasks(columns_, sums_ * count_, [&](int64_t c) {
      for (int64_t k = 0; k < sums_; ++k) {
        double total = 0;
        for (int64_t stretch = 0; stretch < count_; ++stretch) {
          total += totals_of(workspace, stretch)[k * columns_ + c];
        }
        results[static_cast<size_t>(k)][c] = static_cast<float>(total);
      }
    });
  }

 private:
  static constexpr int64_t kMaxStretches = 64;  // enough to keep threads evenly busy
  static constexpr int64_t kLeastRows = 16;
  static constexpr int64_t kBlockRows = 128;  // summed in float

  double* totals_of(std::byte* workspace, int64_t stretch) const {
    return reinterpret_cast<double*>(workspace + stretch * stride_);
  }

  int64_t rows_, columns_, sums_, rows_each_, count_, stride_;
};

}  // namespace tidemark::norm
