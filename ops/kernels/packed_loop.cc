#include "ops/kernels/packed_loop.h"

#include <algorithm>
#include <limits>

namespace tidemark {
namespace {

bool can_pack(const StridedLoop& loop, std::initializer_list<PackedOperand> operands) {
  const size_t last = loop.rank - 1;
  const bool flat = loop.flat(operands.size());
  if (!flat && loop.extents[last] % kPackElements != 0) return false;
  size_t k = 0;
  for (const PackedOperand& operand : operands) {
    const auto& strides = loop.strides[k++];
    if (strides[last] == 0) continue;
    if (strides[last] != 1) return false;
    // Vectors have at most 16 bytes.
    const int64_t alignment = std::min<int64_t>(16, kPackElements * operand.element_bytes);
    if (operand.offset * operand.element_bytes % alignment != 0) return false;
    for (size_t d = 0; d < last; ++d) {
      if (strides[d] % kPackElements != 0) return false;
    }
  }
  return true;
}

}  // namespace

PackedLoop unpacked(const StridedLoop& loop) {
  PackedLoop packed;
  packed.elements = packed.packs = loop.elements;
  packed.small = packed.packs <= std::numeric_limits<int32_t>::max();
  packed.rank = loop.rank;
  packed.extents = loop.extents;
  packed.strides = loop.strides;
  return packed;
}

PackedLoop pack(const StridedLoop& loop, std::initializer_list<PackedOperand> operands) {
  PackedLoop packed = unpacked(loop);
  if (!can_pack(loop, operands)) return packed;
  packed.width = kPackElements;
  packed.flat = loop.flat(operands.size());
  packed.packs = (loop.elements + kPackElements - 1) / kPackElements;
  packed.small = packed.packs <= std::numeric_limits<int32_t>::max();
  const size_t last = loop.rank - 1;
  packed.extents[last] = (loop.extents[last] + kPackElements - 1) / kPackElements;
  for (size_t k = 0; k < operands.size(); ++k) {
    packed.repeats[k] = loop.strides[k][last] == 0;
    packed.strides[k][last] *= kPackElements;
  }
  return packed;
}

}  // namespace tidemark
