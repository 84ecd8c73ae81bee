// Matrix fragments in the layout of tensor cores. Each of a warp's 32 threads holds part of a
// fragment in 32-bit words. A word is one float32 rounded to TF32, or two BFloat16 neighbours
// in a row; counted in words, both types have the same layout. With g = lane / 4 and t = lane %
// 4:
//
//   A, 16 rows x 8 words:    (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4)
//   B, 8 words x 8 columns:  (t, g), (t + 4, g)
//   C, 16 x 8 float32:       (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1)
//
// This is the layout of mma.m16n8k8 for TF32 and mma.m16n8k16 for BFloat16 (PTX ISA,
// "Warp-level matrix instructions"); mma_cuda.cuh has the instructions.
#pragma once

#include <cstdint>

namespace tidemark {

struct FragmentA {
  uint32_t word[4];
};
struct FragmentB {
  uint32_t word[2];
};
struct FragmentC {
  float value[4] = {};
};

}  // namespace tidemark
