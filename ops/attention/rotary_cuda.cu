// One block for each position: its heads share the angles. In vectors of four elements where
// the tensors allow it.
#include "ops/attention/rotary_kernels.h"
#include "ops/kernels/columns_cuda.cuh"
#include "ops/kernels/visit_dtype.h"
#include "ops/register_cuda.h"
#include "ops/registry/kernels.h"

namespace tidemark {
namespace {

using attention::RotaryShape;

constexpr int kThreads = 128;

// A thread reads both halves of its pairs before it writes them: y may be x.
template <int kWidth, class T>
__global__ void __launch_bounds__(kThreads)
    turn_kernel(RotaryShape shape, const T* x, const float* cos, const float* sin, T* y) {
  const RotaryShape::Place place = shape.place(blockIdx.x);
  const int packs = static_cast<int>(shape.half / kWidth);
  const int all = static_cast<int>(shape.heads) * packs;
  for (int p = threadIdx.x; p < all; p += kThreads) {
    const int64_t head = p / packs, i = int64_t{p % packs} * kWidth;
    const T* from = x + place.x + head * shape.rows.head + i;
    T* to = y + place.y + head * shape.half * 2 + i;
    const auto a = load_pack<kWidth>(from), b = load_pack<kWidth>(from + shape.half);
    const auto c = load_pack<kWidth>(cos + place.table + i);
    const auto s = load_pack<kWidth>(sin + place.table + i);
    FloatPack<kWidth> first, second;
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      const float sine = shape.sign * s.v[k];
      first.v[k] = a.v[k] * c.v[k] - b.v[k] * sine;
      second.v[k] = b.v[k] * c.v[k] + a.v[k] * sine;
    }
    store_pack<kWidth>(to, first);
    store_pack<kWidth>(to + shape.half, second);
  }
}

PreparedKernel prepare_rotary(const OpQuery& query) {
  const RotaryShape shape(query);
  const attention::Rows& rows = shape.rows;
  const bool wide = shape.half % 4 == 0 && rows.batch % 4 == 0 && rows.row % 4 == 0 &&
                    rows.head % 4 == 0 && vectors_fit(query);
  return visit_float(query.inputs[0].dtype, [=]<class T>(TypeTag<T>) -> PreparedKernel {
    return {Bytes(0), [=](const KernelArgs& args) {
              launch_blocks(args, shape.positions(), kThreads,
                            wide ? turn_kernel<4, T> : turn_kernel<1, T>, shape, args.in<T>(0),
                            args.in<float>(1), args.in<float>(2), args.out<T>(0));
            }};
  });
}

}  // namespace

void register_rotary_cuda() { set_kernel(kRotary, Backend::kCuda, prepare_rotary); }

}  // namespace tidemark
