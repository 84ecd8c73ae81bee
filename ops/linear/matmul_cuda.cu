// cuBLASLt: its heuristics choose an algorithm once for a signature, which is kept and run as
// it is.
#include <cublasLt.h>

#include <array>
#include <memory>

#include "ops/kernels/map_cuda.cuh"
#include "ops/linear/gemm_shape.h"
#include "ops/linear/matmul.h"
#include "ops/register_cuda.h"
#include "ops/registry/kernels.h"
#include "runtime/core/errors.h"

namespace tidemark {
namespace {

// What cuBLAS itself takes on Hopper. It does not depend on the budget, as choices must not.
constexpr size_t kWorkspaceCap = 32 << 20;
// All operands are gapless and start on a cache line.
constexpr uint32_t kAlignment16 = 16;

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

cublasLtMatrixLayoutOpaque_t layout(int64_t rows, int64_t columns) {
  cublasLtMatrixLayoutOpaque_t layout;
  TIDEMARK_CUBLAS_CALL(cublasLtMatrixLayoutInit(
      &layout, CUDA_R_32F, static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), rows));
  return layout;
}

struct Product {
  Product(const GemmShape& shape, bool with_bias, bool tf32)
      : first(layout(shape.first.rows, shape.first.columns)),
        second(layout(shape.second.rows, shape.second.columns)),
        y(layout(shape.m, shape.n)) {
    TIDEMARK_CUBLAS_CALL(cublasLtMatmulDescInit(
        &desc, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F));
    const auto operation = [](bool transposed) {
      return transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    };
    set(&desc, CUBLASLT_MATMUL_DESC_TRANSA, operation(shape.first.transposed));
    set(&desc, CUBLASLT_MATMUL_DESC_TRANSB, operation(shape.second.transposed));
    if (with_bias) set(&desc, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    Preference wishes;
    wishes.set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspaceCap);
    // Partial sums of a split depth go into the workspace and are added up there in order.
    wishes.set(
        CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
        uint32_t{CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
    for (auto operand : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                         CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                         CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                         CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      wishes.set(operand, kAlignment16);
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

  void run(const KernelArgs& args, bool with_bias) const {
    // The bias's address is this call's own, and so is the description with it.
    cublasLtMatmulDescOpaque_t call = desc;
    cublasLtMatrixLayoutOpaque_t a = first, b = second, c = y;
    if (with_bias) set(&call, CUBLASLT_MATMUL_DESC_BIAS_POINTER, args.in<float>(2));
    const float one = 1, zero = 0;
    void* to = args.outputs[0];
    TIDEMARK_CUBLAS_CALL(cublasLtMatmul(CudaContext::current().cublas_lt(), &call, &one,
                                        args.inputs[1], &a, args.inputs[0], &b, &zero, to, &c,
                                        to, &c, &algorithm, args.workspace, workspace,
                                        CudaContext::stream(args.native_stream)));
  }

  cublasLtMatmulDescOpaque_t desc;
  cublasLtMatrixLayoutOpaque_t first, second, y;
  cublasLtMatmulAlgo_t algorithm;
  size_t workspace;
};

struct Zero {
  TIDEMARK_HOST_DEVICE float operator()() const { return 0; }
};
struct Copy {
  TIDEMARK_HOST_DEVICE float operator()(float x) const { return x; }
};

PreparedKernel prepare_matmul(const OpQuery& query) {
  const bool bias = query.inputs.size() == 3;
  const GemmShape shape(query.inputs[0].shape, query.inputs[1].shape,
                        query.attr<MatmulAttrs>());
  if (shape.m == 0 || shape.n == 0) return {Bytes(0), [](const KernelArgs&) {}};
  if (shape.k == 0) {  // an empty sum
    const TensorMeta& y = query.outputs[0];
    if (!bias) return map_cuda<Zero, float>(query);
    const PackedLoop loop =
        pack(make_loop(y.shape, {&y, &query.inputs[2]}), {y, query.inputs[2]});
    return {Bytes(0), [loop](const KernelArgs& args) {
              apply_cuda(loop, args, detail::Assign<Copy>{}, Writes<float>{args.out<float>(0)},
                         Reads<const float>{args.in<float>(2)});
            }};
  }
  const auto product = std::make_shared<const Product>(shape, bias, query.tf32);
  return {Bytes(static_cast<int64_t>(product->workspace)),
          [product, bias](const KernelArgs& args) { product->run(args, bias); }};
}

}  // namespace

void register_matmul_cuda() { set_kernel(kMatmul, Backend::kCuda, prepare_matmul); }

}  // namespace tidemark
