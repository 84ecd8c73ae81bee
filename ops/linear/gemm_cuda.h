// A matrix product, or a batch of them, by cuBLASLt. Its heuristics choose an algorithm once;
// every run uses that algorithm.
//
// Threads: construct on any thread with a current GPU; run on the compute stream's thread.
#pragma once

#include <cstddef>
#include <memory>

#include "ops/linear/gemm_shape.h"

namespace tidemark {

class GemmPlan {
 public:
  // y = scale a b [+ bias], accumulated in float32; the bias has y's type. Throws DeviceError
  // if cuBLASLt has no algorithm for the shape.
  GemmPlan(const GemmShape& shape, bool bias, bool tf32, float scale = 1);

  Bytes workspace() const;
  // Enqueues the product. `bias` is null unless the plan has one. Pointers are to first
  // elements. With `add`, the product is added to y.
  void run(void* native_stream, const void* a, const void* b, const void* bias, void* y,
           std::byte* workspace, bool add = false) const;

 private:
  struct Product;
  std::shared_ptr<const Product> product_;
};

}  // namespace tidemark
