// A product, or a batch of products, by cuBLASLt: its heuristics choose an algorithm once,
// which is kept and run as it is.
//
// Threads: making one, any thread that a GPU is current on; running, the compute stream's.
#pragma once

#include <cstddef>
#include <memory>

#include "ops/linear/gemm_shape.h"

namespace tidemark {

class GemmPlan {
 public:
  // y = scale a b [+ bias], added up in float32; the bias is of y's type. Throws DeviceError if
  // there is no algorithm for it.
  GemmPlan(const GemmShape& shape, bool bias, bool tf32, float scale = 1);

  Bytes workspace() const;
  // Enqueues it. `bias`: null unless there is one. Pointers are to the first elements.
  void run(void* native_stream, const void* a, const void* b, const void* bias, void* y,
           std::byte* workspace) const;

 private:
  struct Product;
  std::shared_ptr<const Product> product_;
};

}  // namespace tidemark
