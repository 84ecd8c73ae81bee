// A strided loop cut into packs: runs of a few elements that one GPU thread moves as one
// vector.
//
// A pack has four elements if the last dimension allows it in every operand: gapless and
// aligned, or one repeated element. Otherwise a pack has one element. If the whole loop is one
// gapless run, its last pack may be partial.
//
// A plain struct, so that kernels can take it by value.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "ops/kernels/strided.h"
#include "runtime/core/host_device.h"

namespace tidemark {

inline constexpr int kPackElements = 4;

struct PackedLoop {
  int64_t elements = 0;
  int64_t packs = 0;
  int width = 1;       // elements of a pack: 1 or kPackElements
  bool flat = false;   // pack p of every operand starts at element p * width
  bool small = false;  // 32 bits hold every pack's number
  size_t rank = 1;
  std::array<int64_t, kMaxRank> extents{};  // the last in packs
  std::array<std::array<int64_t, kMaxRank>, kMaxOperands>
      strides{};                             // in elements, the last per pack
  std::array<bool, kMaxOperands> repeats{};  // the operand has one element for a whole pack

  // Offsets of pack `pack` in each of the first `count` operands.
  template <size_t count>
  TIDEMARK_HOST_DEVICE void offsets(int64_t pack, int64_t (&offsets)[count]) const {
    for (size_t k = 0; k < count; ++k) offsets[k] = 0;
    if (small) {  // division of 64 bits is several times as slow on GPUs
      walk(static_cast<uint32_t>(pack), offsets);
    } else {
      walk(static_cast<uint64_t>(pack), offsets);
    }
  }

 private:
  template <class Index, size_t count>
  TIDEMARK_HOST_DEVICE void walk(Index pack, int64_t (&offsets)[count]) const {
    for (size_t d = rank; d-- > 0;) {
      const Index extent = static_cast<Index>(extents[d]);
      const Index rest = d > 0 ? pack / extent : 0;
      const int64_t i = static_cast<int64_t>(pack - rest * extent);
      for (size_t k = 0; k < count; ++k) offsets[k] += i * strides[k][d];
      pack = rest;
    }
  }
};

// The other properties of an operand that decide how it can be read.
struct PackedOperand {
  int64_t element_bytes = 0;
  int64_t offset = 0;  // of its first element from an aligned address, in elements

  PackedOperand(const TensorMeta& meta)  // NOLINT: a call reads best with the bare tensor
      : element_bytes(size_of(meta.dtype).count()), offset(meta.offset) {}
};

PackedLoop pack(const StridedLoop& loop, std::initializer_list<PackedOperand> operands);
// The loop in packs of one element.
PackedLoop unpacked(const StridedLoop& loop);

}  // namespace tidemark
