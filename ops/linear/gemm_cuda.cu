#include "ops/linear/gemm_cuda.h"

#include <cublasLt.h>

#include <algorithm>
#include <array>

#include "ops/kernels/launch_cuda.cuh"
#include "runtime/core/errors.h"
#include "runtime/device/cuda/launches.h"

namespace tidemark {
namespace {

// As much as cuBLAS itself takes on Hopper. It must not depend on the budget, or the choice of
// algorithm would.
constexpr size_t kWorkspaceCap = 32 << 20;
// cuBLAS clears counters, multiplies, and adds the parts of a split depth.
constexpr int64_t kLaunchesOfProduct = 4;

template <class T>
void set(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t name, const T& value) {
  TIDEMARK_CUBLAS_CALL(cublasLtMatmulDescSetAttribute(desc, name, &value, sizeof(value)));
}

struct Preference {
  Preference() { TIDEMARK_CUBLAS_CALL(cublasLtMatmulPreferenceInit(&value)); }
  template <class T>
  void set(cublasLtMatmulPreferenceAttributes_t name, const T& wish) {
    TIDEMARK_CUBLAS_CALL(
        cublasLtMatmulPreferenceSetAttribute(&value, name, &wish, sizeof(wish)));
  }
  cublasLtMatmulPreferenceOpaque_t value;
};

cudaDataType_t data_type(DType dtype) {
  return dtype == DType::kBFloat16 ? CUDA_R_16BF : CUDA_R_32F;
}

// `count` matrices, `stride` elements apart.
cublasLtMatrixLayoutOpaque_t layout(const GemmShape::Matrix& matrix, DType dtype, int64_t count,
                                    int64_t stride) {
  cublasLtMatrixLayoutOpaque_t layout;
  TIDEMARK_CUBLAS_CALL(
      cublasLtMatrixLayoutInit(&layout, data_type(dtype), static_cast<uint64_t>(matrix.rows),
                               static_cast<uint64_t>(matrix.columns), matrix.leading));
  const auto batch = static_cast<int32_t>(count);
  TIDEMARK_CUBLAS_CALL(cublasLtMatrixLayoutSetAttribute(
      &layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof(batch)));
  TIDEMARK_CUBLAS_CALL(cublasLtMatrixLayoutSetAttribute(
      &layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof(stride)));
  return layout;
}

}  // namespace

struct GemmPlan::Product {
  Product(const GemmShape& shape, bool with_bias, bool tf32, float factor)
      : batches(shape.batches),
        inner(batches.extents[batches.rank - 1]),
        first(layout(shape.first, shape.inputs, inner, batches.strides[2][batches.rank - 1])),
        second(layout(shape.second, shape.inputs, inner, batches.strides[1][batches.rank - 1])),
        y(layout(shape.result, shape.output, inner, batches.strides[0][batches.rank - 1])),
        input_bytes(size_of(shape.inputs).count()),
        output_bytes(size_of(shape.output).count()),
        scale(factor) {
    const bool rounded = tf32 && shape.inputs == DType::kFloat32;
    TIDEMARK_CUBLAS_CALL(cublasLtMatmulDescInit(
        &desc, rounded ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F));
    const auto operation = [](bool transposed) {
      return transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    };
    set(&desc, CUBLASLT_MATMUL_DESC_TRANSA, operation(shape.first.transposed));
    set(&desc, CUBLASLT_MATMUL_DESC_TRANSB, operation(shape.second.transposed));
    if (with_bias) set(&desc, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    Preference wishes;
    wishes.set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspaceCap);
    // Partial sums of a split depth go into the workspace and are added there in order.
    wishes.set(
        CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
        uint32_t{CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
    const auto alignment =
        static_cast<uint32_t>(shape.aligned ? 16 : std::min(input_bytes, output_bytes));
    for (auto operand : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                         CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                         CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                         CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      wishes.set(operand, alignment);
    }
    cublasLtMatmulHeuristicResult_t best;
    int found = 0;
    TIDEMARK_CUBLAS_CALL(cublasLtMatmulAlgoGetHeuristic(CudaContext::current().cublas_lt(),
                                                        &desc, &first, &second, &y, &y,
                                                        &wishes.value, 1, &best, &found));
    if (found == 0) throw DeviceError("cuBLASLt has no algorithm for this product");
    algorithm = best.algo;
    workspace = best.workspaceSize;
  }

  StridedLoop batches;  // operands y, a, b
  int64_t inner;        // length of the last dimension, done in one call
  cublasLtMatmulDescOpaque_t desc;
  cublasLtMatrixLayoutOpaque_t first, second, y;
  cublasLtMatmulAlgo_t algorithm;
  int64_t input_bytes, output_bytes;  // bytes per element
  float scale;
  size_t workspace;
};

GemmPlan::GemmPlan(const GemmShape& shape, bool bias, bool tf32, float scale)
    : product_(std::make_shared<const Product>(shape, bias, tf32, scale)) {}

Bytes GemmPlan::workspace() const { return Bytes(static_cast<int64_t>(product_->workspace)); }

void GemmPlan::run(void* native_stream, const void* a, const void* b, const void* bias, void* y,
                   std::byte* workspace, bool add) const {
  const Product& p = *product_;
  // The bias's address belongs to this call, so the call needs its own description.
  cublasLtMatmulDescOpaque_t call = p.desc;
  cublasLtMatrixLayoutOpaque_t first = p.first, second = p.second, result = p.y;
  if (bias) set(&call, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  const float kept = add ? 1 : 0;  // of y
  for (int64_t i = 0; i < p.batches.elements; i += p.inner) {
    const auto input = [&](const void* data, size_t operand) {
      return static_cast<const std::byte*>(data) + p.batches.offset(operand, i) * p.input_bytes;
    };
    void* to = static_cast<std::byte*>(y) + p.batches.offset(0, i) * p.output_bytes;
    count_launches(kLaunchesOfProduct);
    TIDEMARK_CUBLAS_CALL(cublasLtMatmul(CudaContext::current().cublas_lt(), &call, &p.scale,
                                        input(b, 2), &first, input(a, 1), &second, &kept, to,
                                        &result, to, &result, &p.algorithm, workspace,
                                        p.workspace, CudaContext::stream(native_stream)));
  }
}

}  // namespace tidemark
