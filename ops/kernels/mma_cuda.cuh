// Tensor-core instructions and their helpers, for our own kernels. They need Ampere or later
// (compute capability 8.0) and trap on older GPUs, so check has_tensor_cores() before
// launching. tests/support/cuda_on_host implements them as plain loops.
//
// All threads of a warp must call each of them together.
#pragma once

#include <cstdint>

#include "ops/kernels/fragments.h"
#include "runtime/core/dtype.h"
#include "runtime/device/cuda/context.h"

namespace tidemark {

// Whether the current GPU has them.
inline bool has_tensor_cores() { return CudaContext::current().compute_capability() >= 80; }

// Rounds to the nearest TF32, ties away from zero.
__device__ inline uint32_t to_tf32(float value) {
  uint32_t word = 0;
#if __CUDA_ARCH__ >= 800
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(word) : "f"(value));
#endif
  return word;
}

// c += a b, in float32. T: float (TF32) or BFloat16.
//
// Volatile, as a product that is used in one branch alone must not move there: all lanes of the
// warp take part. Without a "memory" clobber, as it reads and writes registers only.
template <class T>
__device__ void multiply_add(FragmentC& c, const FragmentA& a, const FragmentB& b);

template <>
__device__ inline void multiply_add<float>(FragmentC& c, const FragmentA& a,
                                           const FragmentB& b) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, "
      "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c.value[0]), "+f"(c.value[1]), "+f"(c.value[2]), "+f"(c.value[3])
      : "r"(a.word[0]), "r"(a.word[1]), "r"(a.word[2]), "r"(a.word[3]), "r"(b.word[0]),
        "r"(b.word[1]));
#else
  __trap();
#endif
}

template <>
__device__ inline void multiply_add<BFloat16>(FragmentC& c, const FragmentA& a,
                                              const FragmentB& b) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
      "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c.value[0]), "+f"(c.value[1]), "+f"(c.value[2]), "+f"(c.value[3])
      : "r"(a.word[0]), "r"(a.word[1]), "r"(a.word[2]), "r"(a.word[3]), "r"(b.word[0]),
        "r"(b.word[1]));
#else
  __trap();
#endif
}

// Loads 16 rows of 8 BFloat16 from shared memory, transposed, as B. Lane i passes the address
// of row i % 16, a multiple of 16 bytes.
__device__ inline FragmentB load_transposed(const uint32_t* row) {
  FragmentB b{};
#if __CUDA_ARCH__ >= 800
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  // Volatile with a "memory" clobber: it reads what other threads wrote, so it must not move
  // across barriers.
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(b.word[0]), "=r"(b.word[1])
               : "r"(address)
               : "memory");
#else
  __trap();
#endif
  return b;
}

}  // namespace tidemark
