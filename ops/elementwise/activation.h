// Functions that another operator applies to its result before storing it, and their gradients.
#pragma once

#include <cstdint>

#include "ops/elementwise/functors.h"
#include "ops/kernels/instruction_sets.h"
#include "runtime/core/host_device.h"

namespace tidemark {

// Members of attributes hold the value as an int64_t.
enum class Activation : int64_t { kNone, kReLU, kReLU6, kSiLU };

// f(v). Math: as for Silu.
template <Activation f, class Math>
TIDEMARK_HOST_DEVICE TIDEMARK_INLINE float activate(float v) {
  if constexpr (f == Activation::kReLU) return Relu()(v);
  if constexpr (f == Activation::kReLU6) return Relu6()(v);
  if constexpr (f == Activation::kSiLU) return Silu<Math>()(v);
  return v;
}

// f'(v) g. For ReLU and ReLU6 the signs and bounds of v are those of f(v).
template <Activation f, class Math>
TIDEMARK_HOST_DEVICE TIDEMARK_INLINE float activation_grad(float g, float v) {
  if constexpr (f == Activation::kReLU) return ReluGrad()(g, v);
  if constexpr (f == Activation::kReLU6) return Relu6Grad()(g, v);
  if constexpr (f == Activation::kSiLU) return SiluGrad<Math>()(g, v);
  return g;
}

// Calls use.template operator()<f>().
template <class Use>
TIDEMARK_INLINE auto with_activation(Activation f, const Use& use) {
  switch (f) {
    case Activation::kReLU: return use.template operator()<Activation::kReLU>();
    case Activation::kReLU6: return use.template operator()<Activation::kReLU6>();
    case Activation::kSiLU: return use.template operator()<Activation::kSiLU>();
    case Activation::kNone: break;
  }
  return use.template operator()<Activation::kNone>();
}

}  // namespace tidemark
