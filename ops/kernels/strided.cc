#include "ops/kernels/strided.h"

#include <string>

namespace tidemark {

StridedLoop make_loop(const Shape& shape, std::initializer_list<const TensorMeta*> operands) {
  TIDEMARK_CHECK(operands.size() <= kMaxOperands,
                 std::to_string(operands.size()) + " operands");
  StridedLoop loop;
  loop.elements = shape.elements();
  loop.rank = 0;
  const size_t count = operands.size();
  for (size_t d = 0; d < shape.rank(); ++d) {
    if (shape[d] == 1) continue;
    std::array<int64_t, kMaxOperands> step{};
    size_t k = 0;
    for (const TensorMeta* operand : operands) {
      // Dimensions are aligned at the last one. An operand repeats along those that it lacks.
      const size_t lead = shape.rank() - operand->shape.rank();
      step[k++] = d < lead || operand->shape[d - lead] == 1 ? 0 : operand->strides[d - lead];
    }
    bool merge = loop.rank > 0;
    for (k = 0; k < count && merge; ++k) {
      merge = loop.strides[k][loop.rank - 1] == step[k] * shape[d];
    }
    if (merge) {
      loop.extents[loop.rank - 1] *= shape[d];
    } else {
      loop.extents[loop.rank++] = shape[d];
    }
    for (k = 0; k < count; ++k) loop.strides[k][loop.rank - 1] = step[k];
  }
  if (loop.rank == 0) {  // one element
    loop.rank = 1;
    loop.extents[0] = 1;
    for (size_t k = 0; k < count; ++k) loop.strides[k][0] = 1;
  }
  return loop;
}

}  // namespace tidemark
