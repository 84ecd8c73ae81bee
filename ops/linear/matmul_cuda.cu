#include "ops/kernels/rounded_cuda.cuh"
#include "ops/linear/gemm_cuda.h"
#include "ops/linear/matmul.h"
#include "ops/register_cuda.h"
#include "ops/registry/kernels.h"
#include "runtime/core/errors.h"

namespace tidemark {
namespace {

PreparedKernel prepare_matmul(const OpQuery& query) {
  const bool bias = query.inputs.size() == 3;
  const GemmPlan plan(
      GemmShape(query.inputs[0], query.inputs[1], query.outputs[0], query.attr<MatmulAttrs>()),
      bias, query.tf32);
  // cuBLASLt relies on this alignment, which contiguous() ensures.
  TIDEMARK_CHECK(!bias || query.inputs[2].offset * 4 % 16 == 0,
                 "a product's bias does not start on 16 bytes");
  if (bias && query.outputs[0].dtype == DType::kBFloat16) {
    // cuBLASLt takes a bias of y's type: a rounded copy lies behind cuBLASLt's own workspace.
    const RoundedCopy rounded(query.inputs[2]);
    const Bytes library = align_up(plan.workspace());
    return {library + rounded.bytes(), [plan, rounded, library](const KernelArgs& args) {
              auto* to = reinterpret_cast<BFloat16*>(args.workspace + library.count());
              rounded.run(args, 2, to);
              plan.run(args.native_stream, args.inputs[0], args.inputs[1], to, args.outputs[0],
                       args.workspace);
            }};
  }
  return {plan.workspace(), [plan, bias](const KernelArgs& args) {
            plan.run(args.native_stream, args.inputs[0], args.inputs[1],
                     bias ? args.inputs[2] : nullptr, args.outputs[0], args.workspace);
          }};
}

}  // namespace

void register_matmul_cuda() { set_kernel(kMatmul, Backend::kCuda, prepare_matmul); }

}  // namespace tidemark
