// Kernels that compute each output element from the same element of each input. A functor (see
// functors.h) and the element types define such a kernel.
//
//   PreparedKernel prepare_add_cpu(const OpQuery& q) { return map_cpu<Add, float, float,
//   float>(q); }
#pragma once

#include <array>
#include <utility>

#include "ops/kernels/functor.h"
#include "ops/kernels/strided.h"
#include "ops/kernels/visit_dtype.h"
#include "ops/registry/op.h"

namespace tidemark {

namespace detail {

template <class F, class Out, class... In, size_t... I>
PreparedKernel map_cpu(const OpQuery& query, std::index_sequence<I...>) {
  const StridedLoop loop =
      make_loop(query.outputs[0].shape, {&query.outputs[0], &query.inputs[I]...});
  return {Bytes(0), [loop](const KernelArgs& args) {
            const F f = make_functor<F>(args.scalars);
            apply(
                loop, [f](Out& y, const In&... x) { y = f(x...); }, args.out<Out>(0),
                args.in<In>(I)...);
          }};
}

template <class F, class T, size_t... I>
PreparedKernel map_floats_cpu(const OpQuery& query, std::index_sequence<I...> inputs) {
  return map_cpu<F, T, std::conditional_t<I == I, T, T>...>(query, inputs);
}

template <class F, class Out, class... In, size_t... I>
PreparedKernel update_cpu(const OpQuery& query, std::index_sequence<I...>) {
  const StridedLoop loop =
      make_loop(query.inputs[0].shape, {&query.inputs[0], &query.inputs[I + 1]...});
  return {Bytes(0), [loop](const KernelArgs& args) {
            const F f = make_functor<F>(args.scalars);
            apply(
                loop, [f](Out& y, const In&... x) { y = f(y, x...); }, args.inout<Out>(0),
                args.in<In>(I + 1)...);
          }};
}

}  // namespace detail

// y = f(x...). The inputs broadcast to the output's shape.
template <class F, class Out, class... In>
PreparedKernel map_cpu(const OpQuery& query) {
  return detail::map_cpu<F, Out, In...>(query, std::index_sequence_for<In...>());
}

// The same for outputs and inputs that are all float32 or all bfloat16; f takes and returns
// floats.
template <class F, size_t inputs>
PreparedKernel map_floats_cpu(const OpQuery& query) {
  return visit_float(query.outputs[0].dtype, [&]<class T>(TypeTag<T>) {
    return detail::map_floats_cpu<F, T>(query, std::make_index_sequence<inputs>());
  });
}

// y = f(y, x...): updates input 0 in place. The other inputs broadcast to its shape.
template <class F, class Out, class... In>
PreparedKernel update_cpu(const OpQuery& query) {
  return detail::update_cpu<F, Out, In...>(query, std::index_sequence_for<In...>());
}

}  // namespace tidemark
