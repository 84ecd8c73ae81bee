// The CUDA counterpart of map_cpu.h, with the same functors: kernels that compute each output
// element from the same element of each input.
//
// A thread takes one pack (packed_loop.h) of each operand: a vector of 4 elements, 16 bytes in
// float32, where the tensors allow it. The kernels neither synchronise nor allocate.
#pragma once

#include <utility>

#include "ops/kernels/functor.h"
#include "ops/kernels/launch_cuda.cuh"
#include "ops/kernels/packed_loop.h"
#include "ops/kernels/visit_dtype.h"
#include "ops/registry/op.h"
#include "runtime/core/errors.h"

namespace tidemark {

// Operands of apply_cuda. An operand that is only written is not read first.
template <class T>
struct Reads {
  using Type = T;
  static constexpr bool kRead = true, kWritten = false;
  T* data;
};
template <class T>
Reads(const T*) -> Reads<const T>;
template <class T>
struct Writes {
  using Type = T;
  static constexpr bool kRead = false, kWritten = true;
  T* data;
};
template <class T>
struct Updates {
  using Type = T;
  static constexpr bool kRead = true, kWritten = true;
  T* data;
};

namespace detail {

template <class T, int kWidth>
struct alignas(sizeof(T) * kWidth < 16 ? sizeof(T) * kWidth : 16) Lanes {
  T lane[kWidth];
};

template <int kWidth, class Operand>
__device__ void load(const Operand& operand, int64_t at, bool repeats,
                     Lanes<std::remove_const_t<typename Operand::Type>, kWidth>& lanes) {
  using T = std::remove_const_t<typename Operand::Type>;
  if constexpr (Operand::kRead) {
    if (kWidth > 1 && repeats) {
      const T value = operand.data[at];
#pragma unroll
      for (int i = 0; i < kWidth; ++i) lanes.lane[i] = value;
    } else {
      lanes = *reinterpret_cast<const Lanes<T, kWidth>*>(operand.data + at);
    }
  }
}

template <int kWidth, class Operand>
__device__ void store(const Operand& operand, int64_t at,
                      const Lanes<std::remove_const_t<typename Operand::Type>, kWidth>& lanes) {
  using T = std::remove_const_t<typename Operand::Type>;
  if constexpr (Operand::kWritten) {
    *reinterpret_cast<Lanes<T, kWidth>*>(operand.data + at) = lanes;
  }
}

template <int kWidth, class F, class... Operand, size_t... I>
__device__ void apply_pack(const int64_t* at, const bool* repeats, const F& f,
                           std::index_sequence<I...>, const Operand&... operands) {
  // Passed as a pack, not stored in a tuple, so that the lanes stay in registers.
  auto run = [&](auto... lanes) {
    (load<kWidth>(operands, at[I], repeats[I], lanes), ...);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) f(lanes.lane[i]...);
    (store<kWidth>(operands, at[I], lanes), ...);
  };
  run(Lanes<std::remove_const_t<typename Operand::Type>, kWidth>{}...);
}

template <int kWidth, bool kFlat, class F, class... Operand>
__global__ void __launch_bounds__(kLaunchThreads)
    apply_kernel(const __grid_constant__ PackedLoop loop, F f, Operand... operands) {
  constexpr size_t kCount = sizeof...(Operand);
  constexpr auto kOperands = std::index_sequence_for<Operand...>();
  const int64_t pack = thread_index();
  if (pack >= loop.packs) return;
  int64_t at[kCount];
  if constexpr (kFlat) {
    const bool repeats[kCount] = {};
    const int64_t begin = pack * kWidth;
#pragma unroll
    for (size_t k = 0; k < kCount; ++k) at[k] = begin;
    if (begin + kWidth <= loop.elements) {
      apply_pack<kWidth>(at, repeats, f, kOperands, operands...);
      return;
    }
    for (int64_t i = begin; i < loop.elements; ++i) {
#pragma unroll
      for (size_t k = 0; k < kCount; ++k) at[k] = i;
      apply_pack<1>(at, repeats, f, kOperands, operands...);
    }
  } else {
    loop.offsets(pack, at);
    apply_pack<kWidth>(at, loop.repeats.data(), f, kOperands, operands...);
  }
}

}  // namespace detail

// The loops that a kernel is compiled for. Each is code of its own, so operators whose operands
// never make such a loop leave it out.
enum Walk : unsigned {
  kWalkFlat = 1,      // PackedLoop::flat
  kWalkPacks = 2,     // packs of several elements, otherwise
  kWalkElements = 4,  // packs of one element, as in unpacked()
  kWalkAny = kWalkFlat | kWalkPacks | kWalkElements,
};

// Calls f(x0, x1, ...) for every element, with a reference to that element of each operand;
// operands are in the loop's order. A written operand must not overlap any other, unless both
// are exactly the same elements. REQUIRES: the loop is one of kWalks.
template <unsigned kWalks = kWalkAny, class F, class... Operand>
void apply_cuda(const PackedLoop& loop, const KernelArgs& args, const F& f,
                const Operand&... operands) {
  static_assert(sizeof...(Operand) <= kMaxOperands);
  void (*kernel)(PackedLoop, F, Operand...) = nullptr;
  if constexpr ((kWalks & kWalkFlat) != 0) {
    if (loop.flat) kernel = detail::apply_kernel<kPackElements, true, F, Operand...>;
  }
  if constexpr ((kWalks & kWalkPacks) != 0) {
    if (!loop.flat && loop.width > 1) {
      kernel = detail::apply_kernel<kPackElements, false, F, Operand...>;
    }
  }
  if constexpr ((kWalks & kWalkElements) != 0) {
    if (loop.width == 1) kernel = detail::apply_kernel<1, false, F, Operand...>;
  }
  TIDEMARK_CHECK(kernel, "operands are laid out as this kernel is not compiled for");
  launch(args, loop.packs, kernel, loop, f, operands...);
}

namespace detail {

template <class F>
struct Assign {
  F f;
  template <class Y, class... X>
  __device__ void operator()(Y& y, const X&... x) const {
    y = f(x...);
  }
};

template <class F>
struct Update {
  F f;
  template <class Y, class... X>
  __device__ void operator()(Y& y, const X&... x) const {
    y = f(y, x...);
  }
};

template <unsigned kWalks, class F, class Out, class... In, size_t... I>
PreparedKernel map_cuda(const OpQuery& query, std::index_sequence<I...>) {
  const StridedLoop elements =
      make_loop(query.outputs[0].shape, {&query.outputs[0], &query.inputs[I]...});
  const PackedLoop loop = kWalks == kWalkElements
                              ? unpacked(elements)
                              : pack(elements, {query.outputs[0], query.inputs[I]...});
  return {Bytes(0), [loop](const KernelArgs& args) {
            apply_cuda<kWalks>(loop, args, Assign<F>{make_functor<F>(args.scalars)},
                               Writes<Out>{args.out<Out>(0)},
                               Reads<const In>{args.in<In>(I)}...);
          }};
}

template <unsigned kWalks, class F, class T, size_t... I>
PreparedKernel map_floats_cuda(const OpQuery& query, std::index_sequence<I...> inputs) {
  return map_cuda<kWalks, F, T, std::conditional_t<I == I, T, T>...>(query, inputs);
}

template <class F, class Out, class... In, size_t... I>
PreparedKernel update_cuda(const OpQuery& query, std::index_sequence<I...>) {
  const PackedLoop loop =
      pack(make_loop(query.inputs[0].shape, {&query.inputs[0], &query.inputs[I + 1]...}),
           {query.inputs[0], query.inputs[I + 1]...});
  return {Bytes(0), [loop](const KernelArgs& args) {
            apply_cuda(loop, args, Update<F>{make_functor<F>(args.scalars)},
                       Updates<Out>{args.inout<Out>(0)},
                       Reads<const In>{args.in<In>(I + 1)}...);
          }};
}

}  // namespace detail

// y = f(x...). The inputs broadcast to the output's shape.
template <class F, class Out, class... In>
PreparedKernel map_cuda(const OpQuery& query) {
  return detail::map_cuda<kWalkAny, F, Out, In...>(query, std::index_sequence_for<In...>());
}
// The same, one element at a time: it compiles faster, for operators with many pairs of types.
template <class F, class Out, class... In>
PreparedKernel plain_map_cuda(const OpQuery& query) {
  return detail::map_cuda<kWalkElements, F, Out, In...>(query,
                                                        std::index_sequence_for<In...>());
}

// For outputs and inputs that are all float32 or all bfloat16; f takes and returns floats.
template <class F, size_t inputs, unsigned kWalks = kWalkAny>
PreparedKernel map_floats_cuda(const OpQuery& query) {
  return visit_float(query.outputs[0].dtype, [&]<class T>(TypeTag<T>) {
    return detail::map_floats_cuda<kWalks, F, T>(query, std::make_index_sequence<inputs>());
  });
}

// y = f(y, x...): updates input 0 in place. The other inputs broadcast to its shape.
template <class F, class Out, class... In>
PreparedKernel update_cuda(const OpQuery& query) {
  return detail::update_cuda<F, Out, In...>(query, std::index_sequence_for<In...>());
}

}  // namespace tidemark
