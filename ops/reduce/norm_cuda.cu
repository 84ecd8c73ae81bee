#include "ops/kernels/block_cuda.cuh"
#include "ops/kernels/members_cuda.cuh"
#include "ops/kernels/strided.h"
#include "ops/kernels/visit_dtype.h"
#include "ops/reduce/kernels.h"
#include "ops/reduce/reduce.h"
#include "ops/register_cuda.h"
#include "ops/registry/kernels.h"

namespace tidemark {
namespace {

constexpr int64_t kRun = 8192;  // elements that one block sums: 32 per thread

__device__ double square(double x) { return x * x; }

template <class T>
__global__ void __launch_bounds__(kLaunchThreads)
    sum_squares(const __grid_constant__ StridedLoop loop, const T* x, double* partial) {
  const int64_t end = min((int64_t{blockIdx.x} + 1) * kRun, loop.elements);
  double sum = 0;
#pragma unroll 4
  for (int64_t i = blockIdx.x * kRun + threadIdx.x; i < end; i += kLaunchThreads) {
    sum += square(float{x[loop.offset(0, i)]});
  }
  const double total = block_sum<kLaunchThreads>(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = total;
}

// For gapless tensors.
template <class T>
__global__ void __launch_bounds__(kLaunchThreads)
    sum_squares_of(const __grid_constant__ Members<1, const T> members, double* partial) {
  const auto& member = member_of_block(members);
  const int64_t begin = (blockIdx.x - member.first_block) * kRun;
  const int64_t end = min(begin + kRun, member.elements);
  double sum = 0;
#pragma unroll 4
  for (int64_t i = begin + threadIdx.x; i < end; i += kLaunchThreads) {
    sum += square(float{member.at[0][i]});
  }
  const double total = block_sum<kLaunchThreads>(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = total;
}

__global__ void __launch_bounds__(kLaunchThreads)
    finish_norm(int64_t runs, const double* partial, float* y) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < runs; i += kLaunchThreads) sum += partial[i];
  const double total = block_sum<kLaunchThreads>(sum);
  if (threadIdx.x == 0) *y = static_cast<float>(sqrt(total));
}

template <class T>
PreparedKernel prepare_norm_of_view(const StridedLoop& loop) {
  const int64_t runs = (loop.elements + kRun - 1) / kRun;
  return {
      Bytes(runs * 8), [=](const KernelArgs& args) {
        double* partial = reinterpret_cast<double*>(args.workspace);
        launch_blocks(args, runs, kLaunchThreads, sum_squares<T>, loop, args.in<T>(0), partial);
        launch_blocks(args, 1, kLaunchThreads, finish_norm, runs, partial, args.out<float>(0));
      }};
}

static_assert(reduce::kMaxNorms == kMaxMembers);

PreparedKernel prepare_norm(const OpQuery& query) {
  return visit_float(query.inputs[0].dtype, [&]<class T>(TypeTag<T>) -> PreparedKernel {
    const StridedLoop first = make_loop(query.inputs[0].shape, {&query.inputs[0]});
    if (!first.flat(1)) return prepare_norm_of_view<T>(first);
    Members<1, const T> members;
    for (const TensorMeta& input : query.inputs) members.add(input.shape.elements(), kRun);
    return {Bytes(members.blocks * 8), [members](const KernelArgs& args) {
              double* partial = reinterpret_cast<double*>(args.workspace);
              Members<1, const T> given = members;
              for (int i = 0; i < given.count; ++i) {
                given.member[i].at[0] = args.in<T>(static_cast<size_t>(i));
              }
              launch_blocks(args, given.blocks, kLaunchThreads, sum_squares_of<T>, given,
                            partial);
              launch_blocks(args, 1, kLaunchThreads, finish_norm, given.blocks, partial,
                            args.out<float>(0));
            }};
  });
}

struct Norms {
  const float* at[reduce::kMaxNorms];
  int count;
};

__global__ void join_norms(const __grid_constant__ Norms norms, float* y) {
  double total = 0;
  for (int i = 0; i < norms.count; ++i) total += square(*norms.at[i]);
  *y = static_cast<float>(sqrt(total));
}

PreparedKernel prepare_join_norms(const OpQuery& query) {
  return {Bytes(0), [count = static_cast<int>(query.inputs.size())](const KernelArgs& args) {
            Norms norms{{}, count};
            for (int i = 0; i < count; ++i)
              norms.at[i] = args.in<float>(static_cast<size_t>(i));
            launch_blocks(args, 1, 1, join_norms, norms, args.out<float>(0));
          }};
}

}  // namespace

void register_norm_cuda() {
  set_kernel(kNorm, Backend::kCuda, prepare_norm);
  set_kernel(kJoinNorms, Backend::kCuda, prepare_join_norms);
}

}  // namespace tidemark
