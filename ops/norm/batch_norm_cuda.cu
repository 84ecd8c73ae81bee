// Our own kernels: cuDNN's fast ones for NHWC do not repeat to the bit. The moments read x
// once, backward reads x and gy twice, in vectors of 4 elements where C allows.
#include <cmath>

#include "ops/elementwise/relu.h"
#include "ops/kernels/columns_cuda.cuh"
#include "ops/kernels/device_math_cuda.cuh"
#include "ops/kernels/launch_cuda.cuh"
#include "ops/kernels/visit_dtype.h"
#include "ops/norm/batch_norm.h"
#include "ops/norm/stretches_cuda.cuh"
#include "ops/register_cuda.h"
#include "ops/registry/kernels.h"

namespace tidemark {
namespace {

using norm::AddPairs;
using norm::combine_stretches;
using norm::finish_blocks;
using norm::finish_channel;
using norm::finishes;
using norm::kThreads;
using norm::Pair;

// The number of values, their mean, and the sum of squared distances from the mean.
struct Moments {
  double count, mean, squares;
};

// Chan, Golub and LeVeque.
struct MergeMoments {
  __device__ void operator()(Moments& a, const Moments& b) const {
    const double total = a.count + b.count;
    if (total == 0) return;
    const double delta = b.mean - a.mean, share = b.count / total;
    a.mean += delta * share;
    a.squares += b.squares + delta * delta * (a.count * share);
    a.count = total;
  }
};

__device__ float fold_scale(double eps, float gamma, float var) {
  return static_cast<float>(gamma / sqrt(double{var} + eps));
}
__device__ float fold_shift(float beta, float mean, float scale) {
  return static_cast<float>(beta - double{mean} * scale);
}

template <int kWidth, class T>
__global__ void __launch_bounds__(kThreads)
    moments_kernel(ColumnTiles tiles, const T* x, Moments* partial) {
  __shared__ Moments shared[kThreads];
  const auto place = tiles.place(blockIdx.x, threadIdx.x);
  const bool inside = place.column < tiles.columns;
  float mean[kWidth] = {}, squares[kWidth] = {};
  float count = 0;
  if (inside) {
    const auto load = [&](int64_t r) {
      return load_pack<kWidth>(x + r * tiles.columns + place.column);
    };
    for_rows<4>(place, load, [&](int64_t, const FloatPack<kWidth>& pack) {
      count += 1;
      const float share = __frcp_rn(count);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {  // Welford
        const float delta = pack.v[i] - mean[i];
        mean[i] += delta * share;
        squares[i] += delta * (pack.v[i] - mean[i]);
      }
    });
  }
#pragma unroll
  for (int i = 0; i < kWidth; ++i) {
    combine_row_lanes(tiles, place, shared, Moments{count, mean[i], squares[i]}, MergeMoments(),
                      i, partial + place.stretch * tiles.columns);
  }
}

struct Folded {
  float* scale;
  float* shift;
};

__global__ void __launch_bounds__(kThreads)
    finish_moments(ColumnTiles tiles, const Moments* partial, float* mean, float* var) {
  const int64_t c = finish_channel();
  const Moments total = combine_stretches(tiles, partial, c, MergeMoments());
  if (!finishes(tiles, c)) return;
  mean[c] = static_cast<float>(total.mean);
  var[c] = static_cast<float>(total.squares / static_cast<double>(tiles.rows));
}

// `beta` may be null; `shift` then is, too.
__global__ void fold_kernel(int64_t channels, double eps, const float* gamma, const float* beta,
                            const float* mean, const float* var, Folded folded) {
  const int64_t c = thread_index();
  if (c >= channels) return;
  folded.scale[c] = fold_scale(eps, gamma[c], var[c]);
  if (beta) folded.shift[c] = fold_shift(beta[c], mean[c], folded.scale[c]);
}

// Packs of x and of the operand that is read beside it.
template <int kWidth>
struct TwoPacks {
  FloatPack<kWidth> x, other;
};

// y = f(x * scale + shift); NaN stays NaN.
template <int kWidth, class T, Activation f>
__global__ void __launch_bounds__(kThreads)
    affine_kernel(ColumnTiles tiles, const T* x, Folded folded, T* y) {
  const auto place = tiles.place(blockIdx.x, threadIdx.x);
  if (place.column >= tiles.columns) return;
  const auto scale = load_pack<kWidth>(folded.scale + place.column);
  const auto shift = load_pack<kWidth>(folded.shift + place.column);
  const auto load = [&](int64_t r) {
    return load_pack<kWidth>(x + r * tiles.columns + place.column);
  };
  for_rows<2>(place, load, [&](int64_t r, const FloatPack<kWidth>& pack) {
    FloatPack<kWidth> out;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      out.v[i] = activate<f, DeviceMath>(pack.v[i] * scale.v[i] + shift.v[i]);
    }
    store_pack<kWidth>(y + r * tiles.columns + place.column, out);
  });
}

// y = max(x * scale + shift + residual, 0) and y's signs. As in relu_cuda.cu, a thread takes
// eight elements, whose signs are a byte. kWidth 4: the channels are a multiple of it.
constexpr int kEach = kSignsPerByte;

template <int kWidth, class T>
__global__ void __launch_bounds__(kLaunchThreads)
    residual_kernel(int64_t elements, int64_t threads, int64_t channels, const T* x,
                    Folded folded, const T* residual, T* y, uint8_t* signs) {
  const int64_t thread = thread_index();
  if (thread >= threads) return;
  const int64_t begin = thread * kEach;
  // A 64-bit remainder takes several times as long.
  int64_t column = elements <= int64_t{1} << 32
                       ? static_cast<uint32_t>(begin) % static_cast<uint32_t>(channels)
                       : begin % channels;
  constexpr int kPacks = kEach / kWidth;
  TwoPacks<kWidth> packs[kPacks];  // of x and the residual
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {  // all are read before the first is written
    const int64_t at = begin + p * kWidth;
    if (at < elements) packs[p] = {load_pack<kWidth>(x + at), load_pack<kWidth>(residual + at)};
  }
  unsigned bits = 0;
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    const int64_t at = begin + p * kWidth;
    if (at >= elements) break;
    const auto scale = load_pack<kWidth>(folded.scale + column);
    const auto shift = load_pack<kWidth>(folded.shift + column);
    FloatPack<kWidth> out;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      float value = packs[p].x.v[i] * scale.v[i] + shift.v[i];
      value += packs[p].other.v[i];
      const T stored = T(activate<Activation::kReLU, DeviceMath>(value));
      out.v[i] = stored;
      bits |= static_cast<unsigned>(stored > 0) << (p * kWidth + i);
    }
    store_pack<kWidth>(y + at, out);
    column += kWidth;
    if (column >= channels) column -= channels;
  }
  signs[thread] = static_cast<uint8_t>(bits);
}

template <class T>
struct GradInputs {
  const T* x;
  const T* gy;
};

template <int kWidth, class T>
__device__ TwoPacks<kWidth> load_both(const GradInputs<T>& in, int64_t at) {
  return {load_pack<kWidth>(in.x + at), load_pack<kWidth>(in.gy + at)};
}

// The gradient g in front of the activation, from packs of x and gy.
template <Activation f, int kWidth>
__device__ FloatPack<kWidth> before(const TwoPacks<kWidth>& packs,
                                    const FloatPack<kWidth>& scale,
                                    const FloatPack<kWidth>& shift) {
  auto g = packs.other;
  if constexpr (f != Activation::kNone) {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      g.v[i] = activation_grad<f, DeviceMath>(g.v[i], packs.x.v[i] * scale.v[i] + shift.v[i]);
    }
  }
  return g;
}

// Sums of g and of g * (x - mean), per column.
template <int kWidth, class T, Activation f>
__global__ void __launch_bounds__(kThreads)
    grad_sums_kernel(ColumnTiles tiles, GradInputs<T> in, const float* mean, Folded folded,
                     Pair* partial) {
  __shared__ Pair shared[kThreads];
  const auto place = tiles.place(blockIdx.x, threadIdx.x);
  const bool inside = place.column < tiles.columns;
  float sum[kWidth] = {}, product[kWidth] = {};
  if (inside) {
    const auto center = load_pack<kWidth>(mean + place.column);
    FloatPack<kWidth> scale{}, shift{};
    if (f != Activation::kNone) {
      scale = load_pack<kWidth>(folded.scale + place.column);
      shift = load_pack<kWidth>(folded.shift + place.column);
    }
    const auto load = [&](int64_t r) {
      return load_both<kWidth>(in, r * tiles.columns + place.column);
    };
    for_rows<2>(place, load, [&](int64_t, const TwoPacks<kWidth>& packs) {
      const auto g = before<f>(packs, scale, shift);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        sum[i] += g.v[i];
        product[i] += g.v[i] * (packs.x.v[i] - center.v[i]);
      }
    });
  }
#pragma unroll
  for (int i = 0; i < kWidth; ++i) {
    combine_row_lanes(tiles, place, shared, Pair{sum[i], product[i]}, AddPairs(), i,
                      partial + place.stretch * tiles.columns);
  }
}

// gx = scale * g + slope * (x - mean) + constant
struct GradChannel {
  float* slope;
  float* constant;
};

__global__ void __launch_bounds__(kThreads)
    finish_grad(ColumnTiles tiles, const Pair* partial, double eps, bool frozen,
                const float* var, const float* scale, float* ggamma, float* gbeta,
                GradChannel channel) {
  const int64_t c = finish_channel();
  const Pair total = combine_stretches(tiles, partial, c, AddPairs());
  if (!finishes(tiles, c)) return;
  const double variance = double{var[c]} + eps, count = static_cast<double>(tiles.rows);
  ggamma[c] = static_cast<float>(total.b / sqrt(variance));
  gbeta[c] = static_cast<float>(total.a);
  channel.slope[c] = frozen ? 0 : static_cast<float>(-scale[c] * total.b / (variance * count));
  channel.constant[c] = frozen ? 0 : static_cast<float>(-scale[c] * total.a / count);
}

template <int kWidth, class T, Activation f>
__global__ void __launch_bounds__(kThreads)
    grad_apply_kernel(ColumnTiles tiles, GradInputs<T> in, const float* mean, Folded folded,
                      GradChannel channel, T* gx) {
  const auto place = tiles.place(blockIdx.x, threadIdx.x);
  if (place.column >= tiles.columns) return;
  const auto center = load_pack<kWidth>(mean + place.column);
  const auto scale = load_pack<kWidth>(folded.scale + place.column);
  FloatPack<kWidth> shift{};
  if (f != Activation::kNone) shift = load_pack<kWidth>(folded.shift + place.column);
  const auto slope = load_pack<kWidth>(channel.slope + place.column);
  const auto constant = load_pack<kWidth>(channel.constant + place.column);
  const auto load = [&](int64_t r) {
    return load_both<kWidth>(in, r * tiles.columns + place.column);
  };
  for_rows<2>(place, load, [&](int64_t r, const TwoPacks<kWidth>& packs) {
    const auto g = before<f>(packs, scale, shift);
    FloatPack<kWidth> out;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      out.v[i] =
          scale.v[i] * g.v[i] + (slope.v[i] * (packs.x.v[i] - center.v[i]) + constant.v[i]);
    }
    store_pack<kWidth>(gx + r * tiles.columns + place.column, out);
  });
}

// Partial results of the stretches, then rows with one float per channel, each aligned to 16
// bytes.
struct Layout {
  ColumnTiles tiles;
  int64_t partial_bytes, row_bytes;
  Bytes workspace;

  Layout(const OpQuery& query, int64_t bytes_of_partial, int64_t rows)
      : tiles(query.inputs[0].shape.elements() / query.inputs[0].shape.back(),
              query.inputs[0].shape.back(), 1, vectors_fit(query)),
        partial_bytes(
            align_up(Bytes(tiles.stretches * tiles.columns * bytes_of_partial), Bytes(16))
                .count()),
        row_bytes(align_up(Bytes(tiles.columns * 4), Bytes(16)).count()),
        workspace(partial_bytes + rows * row_bytes) {}

  float* row(const KernelArgs& args, int64_t which) const {
    return reinterpret_cast<float*>(args.workspace + partial_bytes + which * row_bytes);
  }
  template <class T>
  T* partial(const KernelArgs& args) const {
    return reinterpret_cast<T*>(args.workspace);
  }
  // Launches kernel<4> or kernel<1> over all rows and columns.
  template <class Kernel, class... Argument>
  void run(const KernelArgs& args, Kernel wide, Kernel narrow,
           const Argument&... arguments) const {
    launch_blocks(args, tiles.blocks(), kThreads, tiles.width == 4 ? wide : narrow, tiles,
                  arguments...);
  }
};

PreparedKernel nothing() {
  return {Bytes(0), [](const KernelArgs&) {}};
}

template <class T>
PreparedKernel moments(const OpQuery& query) {
  const Layout layout(query, sizeof(Moments), 0);
  return {layout.workspace, [layout](const KernelArgs& args) {
            auto* partial = layout.partial<Moments>(args);
            layout.run(args, moments_kernel<4, T>, moments_kernel<1, T>, args.in<T>(0),
                       partial);
            launch_blocks(args, finish_blocks(layout.tiles), kThreads, finish_moments,
                          layout.tiles, partial, args.out<float>(0), args.out<float>(1));
          }};
}

template <class T>
void run_residual(const Layout& layout, const KernelArgs& args, const Folded& folded) {
  const int64_t channels = layout.tiles.columns, elements = layout.tiles.rows * channels;
  const int64_t threads = sign_bytes(elements);
  launch(args, threads, layout.tiles.width == 4 ? residual_kernel<4, T> : residual_kernel<1, T>,
         elements, threads, channels, args.in<T>(0), folded, args.in<T>(5), args.out<T>(0),
         args.out<uint8_t>(1));
}

template <class T, Activation f>
PreparedKernel normalise(const OpQuery& query) {
  const Layout layout(query, 0, 2);
  return {layout.workspace,
          [layout, attrs = query.attr<BatchNormAttrs>()](const KernelArgs& args) {
            const bool residual = args.inputs.size() == 6;
            const Folded folded{layout.row(args, 0), layout.row(args, 1)};
            launch(args, layout.tiles.columns, fold_kernel, layout.tiles.columns, attrs.eps,
                   args.in<float>(1), args.in<float>(2), args.in<float>(3), args.in<float>(4),
                   folded);
            if constexpr (f == Activation::kReLU) {
              if (residual) return run_residual<T>(layout, args, folded);
            }
            layout.run(args, affine_kernel<4, T, f>, affine_kernel<1, T, f>, args.in<T>(0),
                       folded, args.out<T>(0));
          }};
}

template <class T, Activation f>
PreparedKernel gradient(const OpQuery& query) {
  const Layout layout(query, sizeof(Pair), 4);
  return {layout.workspace,
          [layout, attrs = query.attr<BatchNormGradAttrs>()](const KernelArgs& args) {
            const float* mean = args.in<float>(3);
            const float* var = args.in<float>(4);
            const float* beta = f != Activation::kNone ? args.in<float>(5) : nullptr;
            const GradInputs<T> in{args.in<T>(0), args.in<T>(1)};
            const Folded folded{layout.row(args, 0), layout.row(args, 1)};
            const GradChannel channel{layout.row(args, 2), layout.row(args, 3)};
            auto* partial = layout.partial<Pair>(args);
            launch(args, layout.tiles.columns, fold_kernel, layout.tiles.columns, attrs.eps,
                   args.in<float>(2), beta, mean, var, folded);
            layout.run(args, grad_sums_kernel<4, T, f>, grad_sums_kernel<1, T, f>, in, mean,
                       folded, partial);
            launch_blocks(args, finish_blocks(layout.tiles), kThreads, finish_grad,
                          layout.tiles, partial, attrs.eps, attrs.frozen != 0, var,
                          folded.scale, args.out<float>(1), args.out<float>(2), channel);
            layout.run(args, grad_apply_kernel<4, T, f>, grad_apply_kernel<1, T, f>, in, mean,
                       folded, channel, args.out<T>(0));
          }};
}

// Prepares kernel.operator()<T>() with x's type, or nothing if x is empty.
template <class Kernel>
PreparedKernel prepare_with(const OpQuery& query, const Kernel& kernel) {
  if (query.inputs[0].shape.elements() == 0) return nothing();
  return visit_float(query.inputs[0].dtype,
                     [&]<class T>(TypeTag<T>) { return kernel.template operator()<T>(); });
}

PreparedKernel prepare_batch_moments(const OpQuery& query) {
  return prepare_with(query, [&]<class T>() { return moments<T>(query); });
}
PreparedKernel prepare_batch_norm(const OpQuery& query) {
  return prepare_with(query, [&]<class T>() {
    return with_activation(Activation{query.attr<BatchNormAttrs>().activation},
                           [&]<Activation f>() { return normalise<T, f>(query); });
  });
}
PreparedKernel prepare_batch_norm_grad(const OpQuery& query) {
  return prepare_with(query, [&]<class T>() {
    return with_activation(Activation{query.attr<BatchNormGradAttrs>().activation},
                           [&]<Activation f>() { return gradient<T, f>(query); });
  });
}

}  // namespace

void register_batch_norm_cuda() {
  set_kernel(kBatchMoments, Backend::kCuda, prepare_batch_moments);
  set_kernel(kBatchNorm, Backend::kCuda, prepare_batch_norm);
  set_kernel(kBatchNormGrad, Backend::kCuda, prepare_batch_norm_grad);
}

}  // namespace tidemark
