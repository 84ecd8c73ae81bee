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

// asm takes its text as a literal, so what instructions have in common is in macros.
#if __CUDA_ARCH__ >= 800
#define TIDEMARK_MMA(kind)                                                              \
  asm volatile("mma.sync.aligned." kind                                                 \
               " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "                        \
               "{%0, %1, %2, %3};"                                                      \
               : "+f"(c.value[0]), "+f"(c.value[1]), "+f"(c.value[2]), "+f"(c.value[3]) \
               : "r"(a.word[0]), "r"(a.word[1]), "r"(a.word[2]), "r"(a.word[3]),        \
                 "r"(b.word[0]), "r"(b.word[1]))
#define TIDEMARK_LDMATRIX(kind)                                                 \
  asm volatile("ldmatrix.sync.aligned." kind " {%0, %1, %2, %3}, [%4];"         \
               : "=r"(words.word[0]), "=r"(words.word[1]), "=r"(words.word[2]), \
                 "=r"(words.word[3])                                            \
               : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(row)))      \
               : "memory")
#else
#define TIDEMARK_MMA(kind) __trap()
#define TIDEMARK_LDMATRIX(kind) __trap()
#endif

// c += a b, in float32. T: float (TF32) or BFloat16.
//
// Volatile, as a product that is used in one branch alone must not move there: all lanes of the
// warp take part. Without a "memory" clobber, as it reads and writes registers only.
template <class T>
__device__ void multiply_add(FragmentC& c, const FragmentA& a, const FragmentB& b) {
  if constexpr (sizeof(T) == 4) {
    TIDEMARK_MMA("m16n8k8.row.col.f32.tf32.tf32.f32");
  } else {
    TIDEMARK_MMA("m16n8k16.row.col.f32.bf16.bf16.f32");
  }
}

// Four matrices of 8 rows of four words from shared memory: word m of the result is word t of
// row g of matrix m. Lane i passes the address of row i % 8 of matrix i / 8, a multiple of 16
// bytes.
//
// Volatile with a "memory" clobber: it reads what other threads wrote, so it must not move
// across barriers.
__device__ inline FragmentA load_matrices(const uint32_t* row) {
  FragmentA words{};
  TIDEMARK_LDMATRIX("m8n8.x4.shared.b16");
  return words;
}

// The same for matrices of 8 x 8 BFloat16, each transposed.
__device__ inline FragmentA load_transposed(const uint32_t* row) {
  FragmentA words{};
  TIDEMARK_LDMATRIX("m8n8.x4.trans.shared.b16");
  return words;
}

#undef TIDEMARK_MMA
#undef TIDEMARK_LDMATRIX

// Copies 16 bytes from global to shared memory while the thread goes on, or clears them. Both
// addresses are multiples of 16. The bytes are there after wait_for_copies(), for this thread;
// after a barrier that follows, for all.
__device__ inline void copy_async(uint32_t* to, const void* from, bool clear) {
#if __CUDA_ARCH__ >= 800
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(address), "l"(__cvta_generic_to_global(from)), "r"(clear ? 0 : 16)
               : "memory");
#else
  __trap();
#endif
}

// Waits for all copies of this thread.
__device__ inline void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" : : : "memory");
#else
  __trap();
#endif
}

// Rounds two numbers to BFloat16, the first in the low half.
__device__ inline uint32_t to_bfloat16_pair(float first, float second) {
  uint32_t word = 0;
#if __CUDA_ARCH__ >= 800
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(second), "f"(first));
#endif
  return word;
}

// 2^x within two units in the last place; results below 2^-126 are 0.
__device__ inline float fast_exp2(float x) {
  float power = 0;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}

}  // namespace tidemark
