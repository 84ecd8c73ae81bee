// Private to this folder: linear_cross_entropy's kernels, attributes, chunks and workspace.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "ops/loss/batch.h"
#include "runtime/core/units.h"

namespace tidemark::loss {

struct LinearCrossEntropyAttrs {
  CrossEntropyAttrs labels{};
  int64_t chunk = 0;  // rows at a time; a multiple of 16 unless it is all of them
  // Outputs behind loss and correct.
  int64_t gx = 0;
  int64_t gweight = 0;
};

// The rows that linear_cross_entropy takes at a time. With fewer than 256, products take longer
// than those of all rows: they wait for the weight, and for its gradient's sum. Chunks are
// about equal, and each starts as aligned as x.
inline int64_t rows_of_chunk(int64_t rows, int64_t classes) {
  constexpr int64_t kRows = 256, kLogits = 1 << 20, kMultiple = 16;
  const int64_t most = std::max(kRows, kLogits / classes);
  const int64_t chunks = std::max<int64_t>(1, (rows + most - 1) / most);
  const int64_t equal = (rows + chunks - 1) / chunks;
  return std::clamp<int64_t>((equal + kMultiple - 1) / kMultiple * kMultiple, 1,
                             std::max<int64_t>(1, rows));
}

struct LinearCrossEntropyGradAttrs {
  int64_t bfloat16 = 0;  // the result's type; else float32
};

// What one call computes, and in which chunks of rows.
struct LinearCrossEntropyProblem {
  explicit LinearCrossEntropyProblem(const OpQuery& query)
      : x(query.inputs[0]),
        weight(query.inputs[1]),
        batch(weight.shape[0], query.inputs[2], query.attr<LinearCrossEntropyAttrs>().labels),
        scaled(query.inputs.size() == 4),
        gx(query.attr<LinearCrossEntropyAttrs>().gx != 0),
        gweight(query.attr<LinearCrossEntropyAttrs>().gweight != 0),
        tf32(query.tf32),
        threads(query.threads),
        chunk(std::min(query.attr<LinearCrossEntropyAttrs>().chunk, batch.rows)) {}

  bool grads() const { return gx || gweight; }
  // Whether the logits' gradient has another type than they, hence a place of its own.
  bool rounded() const { return grads() && x.dtype == DType::kBFloat16; }
  // Outputs.
  static constexpr size_t kGx = 2;
  size_t gweight_output() const { return gx ? 3 : 2; }

  TensorMeta rows_of_x(int64_t rows) const {
    TensorMeta part = x;
    part.shape[0] = rows;
    return part;
  }
  TensorMeta logits(int64_t rows) const {
    return TensorMeta::contiguous(DType::kFloat32, {rows, batch.classes});
  }
  TensorMeta logits_grad(int64_t rows) const {
    return TensorMeta::contiguous(x.dtype, {rows, batch.classes});
  }

  TensorMeta x, weight;
  Batch batch;
  bool scaled, gx, gweight, tf32;
  int threads;
  int64_t chunk;  // rows of each chunk but the last
};

// A device's products of a chunk: those of the last chunk, which may be shorter, are others.
template <class Products>
class ProductsOfChunks {
 public:
  explicit ProductsOfChunks(const LinearCrossEntropyProblem& p)
      : rows_(p.batch.rows), chunk_(p.chunk) {
    if (chunk_ == 0) return;
    whole_ = std::make_shared<const Products>(p, chunk_);
    last_ = rows_ % chunk_ == 0 ? whole_ : std::make_shared<const Products>(p, rows_ % chunk_);
  }
  // Of the chunk that starts with row `first`.
  const Products& at(int64_t first) const { return first + chunk_ <= rows_ ? *whole_ : *last_; }
  Bytes workspace() const {
    return whole_ ? std::max(whole_->workspace(), last_->workspace()) : Bytes(0);
  }

 private:
  int64_t rows_, chunk_;
  std::shared_ptr<const Products> whole_, last_;
};

// Offsets in the workspace. The libraries' own is at its start.
struct LinearCrossEntropyWorkspace {
  LinearCrossEntropyWorkspace(const LinearCrossEntropyProblem& problem, Bytes library,
                              Bytes for_each_row) {
    const auto take = [this](Bytes bytes) {
      const int64_t at = total.count();
      total += align_up(bytes);
      return at;
    };
    take(library);
    rows = take(for_each_row * problem.batch.rows);
    logits = take(problem.logits(problem.chunk).bytes());
    logits_grad = problem.rounded() ? take(problem.logits_grad(problem.chunk).bytes()) : logits;
  }

  int64_t rows, logits, logits_grad;
  Bytes total{0};
};

PreparedKernel prepare_linear_cross_entropy_cpu(const OpQuery& query);
PreparedKernel prepare_linear_cross_entropy_grad_cpu(const OpQuery& query);

}  // namespace tidemark::loss
