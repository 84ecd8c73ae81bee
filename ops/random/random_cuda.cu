// Four numbers per thread. The numbers are the same on every device (numbers.h).
#include <algorithm>

#include "ops/kernels/any_float.h"
#include "ops/kernels/columns_cuda.cuh"
#include "ops/kernels/launch_cuda.cuh"
#include "ops/kernels/packed_loop.h"
#include "ops/kernels/strided.h"
#include "ops/random/kernels.h"
#include "ops/random/numbers.h"
#include "ops/random/random.h"
#include "ops/register_cuda.h"
#include "ops/registry/kernels.h"

namespace tidemark {
namespace {

constexpr int kEach = 4;

struct Stream {
  uint64_t seed;
  uint64_t offset;
};

__global__ void uniform_kernel(Stream stream, int64_t n, float low, float high, float* y) {
  const int64_t begin = thread_index() * kEach;
  for_random_bits(stream.seed, stream.offset, begin, min(begin + kEach, n),
                  [&](int64_t i, uint32_t bits) {
                    const float value = low + (high - low) * uniform_float(bits);
                    y[i] = value < high ? value : low;  // rounding may reach the excluded end
                  });
}

__global__ void normal_kernel(Stream stream, int64_t n, float mean, float deviation, float* y) {
  const int64_t begin = thread_index() * kEach;
  for_random_bits(stream.seed, stream.offset, begin, min(begin + kEach, (n + 1) / 2 * 2),
                  NormalPairs{n, mean, deviation, y});
}

struct Drop {
  uint64_t threshold;
  float factor;
  __device__ float operator()(uint32_t bits, float x) const {
    return bits >= threshold ? x * factor : 0;
  }
};

__global__ void dropout_kernel(Stream stream, const __grid_constant__ PackedLoop loop,
                               bool flat, Drop drop, FloatInput x, FloatOutput y) {
  const int64_t begin = thread_index() * kEach;
  for_random_bits(stream.seed, stream.offset, begin, min(begin + kEach, loop.elements),
                  [&](int64_t i, uint32_t bits) {
                    int64_t at[1] = {i};
                    if (!flat) loop.offsets(i, at);
                    y.set(i, drop(bits, x[at[0]]));
                  });
}

// The same where a thread's numbers are one Philox block and its elements one vector.
__global__ void dropout_vectors_kernel(Stream stream, int64_t n, Drop drop, FloatInput x,
                                       FloatOutput y) {
  const int64_t block = thread_index(), begin = block * kEach;
  if (begin >= n) return;
  const auto words =
      random_block(stream.seed, stream.offset / 4 + static_cast<uint64_t>(block));
  if (begin + kEach <= n) {
    auto pack = load_pack<kEach>(x + begin);
#pragma unroll
    for (int i = 0; i < kEach; ++i) pack.v[i] = drop(words[i], pack.v[i]);
    store_pack<kEach>(y + begin, pack);
    return;
  }
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    if (begin + i < n) y.set(begin + i, drop(words[i], x[begin + i]));
  }
}

Stream stream_of(const KernelArgs& args, uint64_t seed) {
  return {seed, static_cast<uint64_t>(args.scalars[0])};
}

int64_t threads_for(int64_t n) { return (n + kEach - 1) / kEach; }

// `kernel` draws from a distribution with two parameters.
template <void (*kernel)(Stream, int64_t, float, float, float*)>
PreparedKernel prepare_draw(const OpQuery& query) {
  const int64_t n = query.outputs[0].shape.elements();
  const uint64_t seed = static_cast<uint64_t>(query.attr<random::RandomAttrs>().seed);
  return {Bytes(0), [=](const KernelArgs& args) {
            launch(args, threads_for(n), kernel, stream_of(args, seed), n,
                   static_cast<float>(args.scalars[1]), static_cast<float>(args.scalars[2]),
                   args.out<float>(0));
          }};
}

PreparedKernel prepare_dropout(const OpQuery& query) {
  const StridedLoop elements = make_loop(query.outputs[0].shape, {&query.inputs[0]});
  const PackedLoop loop = unpacked(elements);
  const auto& attrs = query.attr<random::DropoutAttrs>();
  const uint64_t seed = static_cast<uint64_t>(attrs.seed);
  const Drop drop{static_cast<uint64_t>(attrs.p * 0x1p32),
                  static_cast<float>(1 / (1 - attrs.p))};
  const bool flat = elements.flat(1), vectors = flat && vectors_fit(query);
  return {Bytes(0), [=](const KernelArgs& args) {
            const Stream stream = stream_of(args, seed);
            const FloatInput x = float_input(args, 0);
            const FloatOutput y = float_output(args, 0);
            const int64_t threads = threads_for(loop.elements);
            if (vectors && stream.offset % 4 == 0) {
              launch(args, threads, dropout_vectors_kernel, stream, loop.elements, drop, x, y);
            } else {
              launch(args, threads, dropout_kernel, stream, loop, flat, drop, x, y);
            }
          }};
}

}  // namespace

void register_random_cuda() {
  set_kernel(kUniform, Backend::kCuda, prepare_draw<uniform_kernel>);
  set_kernel(kNormal, Backend::kCuda, prepare_draw<normal_kernel>);
  set_kernel(kDropout, Backend::kCuda, prepare_dropout);
}

}  // namespace tidemark
