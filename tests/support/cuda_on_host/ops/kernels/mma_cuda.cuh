// ops/kernels/mma_cuda.cuh on the host, following NVIDIA's PTX ISA: where a warp's threads hold
// the pieces of a matrix, and how numbers are rounded. See cuda_runtime.h.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include <cuda_runtime.h>
#include "ops/kernels/fragments.h"
#include "runtime/core/dtype.h"

namespace tidemark {

inline bool has_tensor_cores() { return true; }

inline uint32_t to_tf32(float value) {
  const auto word = std::bit_cast<uint32_t>(value);
  return std::isnan(value) ? 0x7FFFFFFF : (word + 0x1000) & ~uint32_t{0x1FFF};
}

namespace cuda_on_host {

// Shares a value of each thread of the block with the other threads of its warp.
template <class Given>
const Given* exchange(const Given& mine) {
  static Given given[2][1024];
  static int turns[1024];
  // Threads that are ahead write the other half; they cannot be two turns ahead.
  Given* half = given[turns[threadIdx.x]++ % 2];
  half[threadIdx.x] = mine;
  __syncthreads();
  return half + threadIdx.x / 32 * 32;
}

// Number i of a word.
inline float number(uint32_t word, int, float) {
  // Tensor cores ignore bits beyond TF32.
  return std::bit_cast<float>(word & ~uint32_t{0x1FFF});
}
inline float number(uint32_t word, int i, BFloat16) {
  return std::bit_cast<float>(i == 0 ? word << 16 : word & 0xFFFF0000);
}

}  // namespace cuda_on_host

template <class T>
void multiply_add(FragmentC& c, const FragmentA& a, const FragmentB& b) {
  struct Factors {
    FragmentA a;
    FragmentB b;
  };
  const Factors* lanes = cuda_on_host::exchange(Factors{a, b});
  const int g = static_cast<int>(threadIdx.x) % 32 / 4, t = static_cast<int>(threadIdx.x) % 4;
  for (int i = 0; i < 4; ++i) {
    const int row = g + i / 2 * 8, column = 2 * t + i % 2;
    for (int word = 0; word < 8; ++word) {
      const uint32_t x = lanes[row % 8 * 4 + word % 4].a.word[word / 4 * 2 + row / 8];
      const uint32_t y = lanes[column * 4 + word % 4].b.word[word / 4];
      for (int n = 0; n < static_cast<int>(4 / sizeof(T)); ++n) {
        c.value[i] += cuda_on_host::number(x, n, T(0.0F)) * cuda_on_host::number(y, n, T(0.0F));
      }
    }
  }
}

inline FragmentA load_matrices(const uint32_t* row) {
  const uint32_t* const* rows = cuda_on_host::exchange(row);
  const int g = static_cast<int>(threadIdx.x) % 32 / 4, t = static_cast<int>(threadIdx.x) % 4;
  FragmentA a{};
  for (int matrix = 0; matrix < 4; ++matrix) a.word[matrix] = rows[matrix * 8 + g][t];
  return a;
}

inline FragmentA load_transposed(const uint32_t* row) {
  const uint32_t* const* rows = cuda_on_host::exchange(row);
  const int g = static_cast<int>(threadIdx.x) % 32 / 4, t = static_cast<int>(threadIdx.x) % 4;
  FragmentA a{};
  for (int matrix = 0; matrix < 4; ++matrix) {
    for (int i = 0; i < 2; ++i) {
      const uint32_t word = rows[matrix * 8 + 2 * t + i][g / 2];
      a.word[matrix] |= (g % 2 == 0 ? word & 0xFFFF : word >> 16) << (16 * i);
    }
  }
  return a;
}

inline void copy_async(uint32_t* to, const void* from, bool clear) {
  if (clear) {
    std::memset(to, 0, 16);
  } else {
    std::memcpy(to, from, 16);
  }
}
inline void wait_for_copies() {}

inline uint32_t to_bfloat16_pair(float first, float second) {
  return uint32_t{BFloat16(first).bits} | uint32_t{BFloat16(second).bits} << 16;
}

inline float fast_exp2(float x) {
  const float power = std::exp2(x);
  return power < 0x1p-126F ? 0 : power;
}

// Here all threads of the block must call it.
inline unsigned __ballot_sync(unsigned, bool set) {
  const bool* lanes = cuda_on_host::exchange(set);
  unsigned ballot = 0;
  for (int lane = 0; lane < 32; ++lane) ballot |= static_cast<unsigned>(lanes[lane]) << lane;
  return ballot;
}

}  // namespace tidemark
