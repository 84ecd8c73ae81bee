#include "ops/linear/gemm_cuda.h"
#include "ops/linear/matmul.h"
#include "ops/register_cuda.h"
#include "ops/registry/kernels.h"

namespace tidemark {
namespace {

PreparedKernel prepare_matmul(const OpQuery& query) {
  const bool bias = query.inputs.size() == 3;
  const GemmPlan plan(
      GemmShape(query.inputs[0], query.inputs[1], query.outputs[0], query.attr<MatmulAttrs>()),
      bias, query.tf32);
  return {plan.workspace(), [plan, bias](const KernelArgs& args) {
            plan.run(args.native_stream, args.in<float>(0), args.in<float>(1),
                     bias ? args.in<float>(2) : nullptr, args.out<float>(0), args.workspace);
          }};
}

}  // namespace

void register_matmul_cuda() { set_kernel(kMatmul, Backend::kCuda, prepare_matmul); }

}  // namespace tidemark
