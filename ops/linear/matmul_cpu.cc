#include <memory>
#include <utility>

#include "ops/dnnl/primitive.h"
#include "ops/linear/gemm_shape.h"
#include "ops/linear/matmul.h"

namespace tidemark {
namespace {

// A matrix or a batch of matrices, which the product transposes if `transposed`.
dnnl::memory::desc matrix(const TensorMeta& x, bool transposed) {
  dnnl::memory::dims extents(x.shape.begin(), x.shape.end());
  dnnl::memory::dims strides(x.strides.begin(), x.strides.end());
  const size_t row = extents.size() - 2, column = extents.size() - 1;
  for (size_t d = 0; d < row; ++d) {
    if (strides[d] == 0) extents[d] = strides[d] = 1;  // repeated
  }
  const MatrixLayout layout(x);
  strides[row] = layout.by_rows ? layout.leading : 1;
  strides[column] = layout.by_rows ? 1 : layout.leading;
  if (transposed) {
    std::swap(extents[row], extents[column]);
    std::swap(strides[row], strides[column]);
  }
  return {extents, onednn::data_type(x.dtype), strides};
}

dnnl::memory::desc bias_row(int64_t columns, size_t rank) {
  dnnl::memory::dims extents(rank, 1), strides(rank, columns);
  extents.back() = columns;
  strides.back() = 1;
  return {extents, dnnl::memory::data_type::f32, strides};
}

// For some widths oneDNN reads a wide second matrix at half speed in place. If the first matrix
// has many rows, blocking the second one first costs little. The copy is workspace, so its size
// is limited.
bool worth_blocking(const OpQuery& query) {
  constexpr int64_t kRows = 128;
  constexpr int64_t kColumns = 2048;
  constexpr Bytes kMost{32 << 20};
  const Shape& y = query.outputs[0].shape;
  const bool by_rows = MatrixLayout(query.inputs[1]).by_rows;
  return by_rows != (query.attr<MatmulAttrs>().transpose_b != 0) && y.rank() == 2 &&
         y[0] >= kRows && y[1] > kColumns && query.inputs[1].bytes() <= kMost;
}

}  // namespace

PreparedKernel prepare_matmul_cpu(const OpQuery& query) {
  return prepare_product_cpu(query, false);
}

PreparedKernel prepare_product_cpu(const OpQuery& query, bool add) {
  onednn::require_kernels("matmul", query.inputs[0].dtype);
  const UseThreads use(query.threads);
  const auto& attrs = query.attr<MatmulAttrs>();
  const bool bias = query.inputs.size() == 3;
  const auto a = matrix(query.inputs[0], attrs.transpose_a != 0);
  const auto plain = matrix(query.inputs[1], attrs.transpose_b != 0);
  const auto b = worth_blocking(query) ? onednn::any_layout(plain) : plain;
  const auto y = matrix(query.outputs[0], false);
  const auto desc =
      bias ? dnnl::matmul::desc(
                 a, b, bias_row(query.inputs[2].shape[0], query.outputs[0].shape.rank()), y)
           : dnnl::matmul::desc(a, b, y);
  const dnnl::matmul::primitive_desc description(
      desc, add ? onednn::adding_attributes() : onednn::attributes(), onednn::engine());
  if (!bias) {
    return onednn::weighted_kernel(description, {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
                                   plain, use);
  }
  return onednn::weighted_kernel(
      description, {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_BIAS}, plain, use);
}

}  // namespace tidemark
