// Pieces of matrices as tensor cores take them: each of a warp's 32 threads holds some of a
// piece, in words of 32 bits: one float32 rounded to TF32, or two BFloat16 side by side in a
// row. Said in words, a piece lies alike for both. With g = lane / 4 and t = lane % 4:
//
//   A, 16 rows x 8 words:    (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4)
//   B, 8 words x 8 columns:  (t, g), (t + 4, g)
//   C, 16 x 8 float32:       (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1)
//
// That is mma.m16n8k8 for TF32 and mma.m16n8k16 for BFloat16 (PTX ISA, "Warp-level matrix
// instructions"); mma_cuda.cuh has the instructions.
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
