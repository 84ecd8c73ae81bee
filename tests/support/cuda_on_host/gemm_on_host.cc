// GemmPlan as plain loops over the same description that cuBLASLt gets.
#include "ops/linear/gemm_cuda.h"

#include "ops/kernels/any_float.h"

namespace tidemark {

struct GemmPlan::Product {
  GemmShape shape;
  bool bias;
  float scale;
};

GemmPlan::GemmPlan(const GemmShape& shape, bool bias, bool, float scale)
    : product_(std::make_shared<const Product>(Product{shape, bias, scale})) {}

// Not zero, so that tests cover its place among other parts of a workspace.
Bytes GemmPlan::workspace() const { return Bytes(100); }

void GemmPlan::run(void*, const void* a, const void* b, const void* bias, void* y,
                   std::byte* workspace, bool add) const {
  const auto& [shape, with_bias, scale] = *product_;
  std::fill_n(workspace, 100, std::byte{0xAB});
  const auto at = [](const GemmShape::Matrix& matrix, int64_t row, int64_t column) {
    if (matrix.transposed) std::swap(row, column);
    return column * matrix.leading + row;
  };
  for (int64_t i = 0; i < shape.batches.elements; ++i) {
    const FloatInput first = FloatInput(b, shape.inputs) + shape.batches.offset(2, i);
    const FloatInput second = FloatInput(a, shape.inputs) + shape.batches.offset(1, i);
    const FloatOutput to = FloatOutput(y, shape.output) + shape.batches.offset(0, i);
    const FloatInput more(bias, shape.output);
    for (int64_t column = 0; column < shape.n; ++column) {
      for (int64_t row = 0; row < shape.m; ++row) {
        float sum = 0;
        for (int64_t l = 0; l < shape.k; ++l) {
          sum += first[at(shape.first, row, l)] * second[at(shape.second, l, column)];
        }
        const int64_t place = column * shape.result.leading + row;
        const float before = add ? FloatInput(to.data, shape.output)[place] : 0;
        to.set(place, before + scale * sum + (with_bias ? more[row] : 0));
      }
    }
  }
}

}  // namespace tidemark
