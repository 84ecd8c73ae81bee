// The arithmetic of elementwise operators, shared by all devices.
//
// A functor with members takes their values from the call's scalars.
#pragma once

#include <cmath>
#include <cstdint>

#include "ops/kernels/instruction_sets.h"
#include "ops/registry/attrs.h"
#include "runtime/core/host_device.h"

namespace tidemark {

struct Add {
  TIDEMARK_HOST_DEVICE float operator()(float a, float b) const { return a + b; }
};
struct Sub {
  TIDEMARK_HOST_DEVICE float operator()(float a, float b) const { return a - b; }
};
struct Mul {
  TIDEMARK_HOST_DEVICE float operator()(float a, float b) const { return a * b; }
};
struct Div {
  TIDEMARK_HOST_DEVICE float operator()(float a, float b) const { return a / b; }
};
// a + s b; s: scalar 0.
struct AddScaled {
  float s;
  static AddScaled from(const Scalars& scalars) { return {static_cast<float>(scalars[0])}; }
  TIDEMARK_HOST_DEVICE float operator()(float a, float b) const { return a + s * b; }
};

// s x; s: scalar 0.
struct Scale {
  float s;
  static Scale from(const Scalars& scalars) { return {static_cast<float>(scalars[0])}; }
  TIDEMARK_HOST_DEVICE float operator()(float x) const { return s * x; }
};
struct Neg {
  TIDEMARK_HOST_DEVICE float operator()(float x) const { return -x; }
};
struct Abs {
  TIDEMARK_HOST_DEVICE float operator()(float x) const { return std::fabs(x); }
};
// NaN stays NaN.
struct Relu {
  TIDEMARK_HOST_DEVICE float operator()(float x) const { return x < 0 ? 0 : x; }
};
struct Relu6 {
  TIDEMARK_HOST_DEVICE float operator()(float x) const { return x < 0 ? 0 : x > 6 ? 6 : x; }
};
struct Exp {
  TIDEMARK_HOST_DEVICE float operator()(float x) const { return std::exp(x); }
};
struct Log {
  TIDEMARK_HOST_DEVICE float operator()(float x) const { return std::log(x); }
};
struct Sqrt {
  TIDEMARK_HOST_DEVICE float operator()(float x) const { return std::sqrt(x); }
};
struct Tanh {
  TIDEMARK_HOST_DEVICE float operator()(float x) const { return std::tanh(x); }
};
struct Sigmoid {
  TIDEMARK_HOST_DEVICE float operator()(float x) const { return 1 / (1 + std::exp(-x)); }
};

// Math provides 1 / (1 + e^-x): VectorMath for CPU loops, another class for GPU kernels.
template <class Math>
struct Silu {
  TIDEMARK_HOST_DEVICE TIDEMARK_INLINE float operator()(float x) const {
    return x * Math::logistic(x);
  }
};
template <class Math>
struct SiluMul {
  TIDEMARK_HOST_DEVICE TIDEMARK_INLINE float operator()(float gate, float up) const {
    return Silu<Math>()(gate) * up;
  }
};

// Gradients, from the output's gradient g and the output y (Abs and Silu: the input x).
struct AbsGrad {
  TIDEMARK_HOST_DEVICE float operator()(float g, float x) const {
    return x > 0 ? g : x < 0 ? -g : 0;
  }
};
struct ReluGrad {
  TIDEMARK_HOST_DEVICE float operator()(float g, float y) const { return y > 0 ? g : 0; }
};
struct Relu6Grad {
  TIDEMARK_HOST_DEVICE float operator()(float g, float y) const {
    return y > 0 && y < 6 ? g : 0;
  }
};
struct SqrtGrad {
  TIDEMARK_HOST_DEVICE float operator()(float g, float y) const { return g * 0.5f / y; }
};
struct TanhGrad {
  TIDEMARK_HOST_DEVICE float operator()(float g, float y) const { return g * (1 - y * y); }
};
struct SigmoidGrad {
  TIDEMARK_HOST_DEVICE float operator()(float g, float y) const { return g * y * (1 - y); }
};
template <class Math>
struct SiluGrad {
  TIDEMARK_HOST_DEVICE TIDEMARK_INLINE float operator()(float g, float x) const {
    const float s = Math::logistic(x);
    return g * (s + x * (s * Math::logistic(-x)));  // 1 - s, without cancellation
  }
};
// Both gradients. T: float or BFloat16, the stored type.
template <class Math>
struct SiluMulGrad {
  template <class T>
  TIDEMARK_HOST_DEVICE TIDEMARK_INLINE void operator()(T& dgate, T& dup, float g, float gate,
                                                       float up) const {
    const float dsilu = g * up;
    dup = g * Silu<Math>()(gate);
    dgate = SiluGrad<Math>()(dsilu, gate);
  }
};
// The gradient of a / b with respect to b, from y = a / b.
struct DivGrad {
  TIDEMARK_HOST_DEVICE float operator()(float g, float y, float b) const { return -g * y / b; }
};

struct Equal {
  template <class T>
  TIDEMARK_HOST_DEVICE bool operator()(T a, T b) const {
    return a == b;
  }
};
struct Greater {
  template <class T>
  TIDEMARK_HOST_DEVICE bool operator()(T a, T b) const {
    return a > b;
  }
};
struct Select {
  TIDEMARK_HOST_DEVICE float operator()(bool condition, float a, float b) const {
    return condition ? a : b;
  }
};
// The gradient of select with respect to a (for b: with a and b swapped).
struct SelectGrad {
  TIDEMARK_HOST_DEVICE float operator()(bool condition, float g) const {
    return condition ? g : 0;
  }
};
struct SelectOtherGrad {
  TIDEMARK_HOST_DEVICE float operator()(bool condition, float g) const {
    return condition ? 0 : g;
  }
};

// To integers: rounds toward zero; undefined for values out of range. To bool: whether the
// value is nonzero.
template <class To>
struct Cast {
  template <class From>
  TIDEMARK_HOST_DEVICE To operator()(From x) const {
    return static_cast<To>(x);
  }
};

// In place: y becomes f(y, x).
struct Replace {
  template <class T>
  TIDEMARK_HOST_DEVICE T operator()(T, T x) const {
    return x;
  }
};
template <class T>
struct ReplaceByValue {
  T value;
  static ReplaceByValue from(const Scalars& scalars) { return {static_cast<T>(scalars[0])}; }
  TIDEMARK_HOST_DEVICE T operator()(T) const { return value; }
};

}  // namespace tidemark
