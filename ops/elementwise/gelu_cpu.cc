#include "ops/elementwise/gelu.h"

#include "ops/elementwise/gelu_functors.h"
#include "ops/elementwise/kernels.h"
#include "ops/kernels/instruction_sets.h"
#include "ops/kernels/parallel_for.h"
#include "ops/kernels/vector_math.h"
#include "ops/kernels/visit_dtype.h"

namespace tidemark::elementwise {
namespace {

// No __restrict: y may be x, and dx may be g or x.
template <class F, class T>
TIDEMARK_INLINE void forward_of(const T* x, T* y, int64_t n) {
  TIDEMARK_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < n; ++i) y[i] = F()(x[i]);
}
template <class F, class T>
TIDEMARK_INLINE void backward_of(const T* g, const T* x, T* dx, int64_t n) {
  TIDEMARK_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < n; ++i) dx[i] = F()(g[i], x[i]);
}

template <class T>
struct Loops {
  void (*forward[2])(const T* x, T* y, int64_t n);  // [GeluAttrs::tanh]
  void (*backward[2])(const T* g, const T* x, T* dx, int64_t n);
};

#define TIDEMARK_DEFINE_LOOPS(name, ...)                                           \
  struct name {                                                                    \
    template <class T>                                                             \
    __VA_ARGS__ static void exact(const T* x, T* y, int64_t n) {                   \
      forward_of<GeluExact<VectorMath>>(x, y, n);                                  \
    }                                                                              \
    template <class T>                                                             \
    __VA_ARGS__ static void tanh(const T* x, T* y, int64_t n) {                    \
      forward_of<GeluTanh<VectorMath>>(x, y, n);                                   \
    }                                                                              \
    template <class T>                                                             \
    __VA_ARGS__ static void exact_grad(const T* g, const T* x, T* dx, int64_t n) { \
      backward_of<GeluExactGrad<VectorMath>>(g, x, dx, n);                         \
    }                                                                              \
    template <class T>                                                             \
    __VA_ARGS__ static void tanh_grad(const T* g, const T* x, T* dx, int64_t n) {  \
      backward_of<GeluTanhGrad<VectorMath>>(g, x, dx, n);                          \
    }                                                                              \
    template <class T>                                                             \
    static constexpr Loops<T> table() {                                            \
      return {{exact<T>, tanh<T>}, {exact_grad<T>, tanh_grad<T>}};                 \
    }                                                                              \
  };
TIDEMARK_TYPED_LOOPS(TIDEMARK_DEFINE_LOOPS)

constexpr int64_t kGrain = kSerialElements / 4;

}  // namespace

PreparedKernel prepare_gelu_cpu(const OpQuery& query) {
  const int64_t n = query.outputs[0].shape.elements();
  return visit_float(query.outputs[0].dtype, [&]<class T>(TypeTag<T>) -> PreparedKernel {
    const auto forward = loops<T>().forward[query.attr<GeluAttrs>().tanh != 0];
    return {Bytes(0), [=](const KernelArgs& args) {
              const T* x = args.in<T>(0);
              T* y = args.out<T>(0);
              parallel_chunks(n, kGrain, [&](int64_t begin, int64_t end) {
                forward(x + begin, y + begin, end - begin);
              });
            }};
  });
}

PreparedKernel prepare_gelu_grad_cpu(const OpQuery& query) {
  const int64_t n = query.outputs[0].shape.elements();
  return visit_float(query.outputs[0].dtype, [&]<class T>(TypeTag<T>) -> PreparedKernel {
    const auto backward = loops<T>().backward[query.attr<GeluAttrs>().tanh != 0];
    return {Bytes(0), [=](const KernelArgs& args) {
              const T* g = args.in<T>(0);
              const T* x = args.in<T>(1);
              T* dx = args.out<T>(0);
              parallel_chunks(n, kGrain, [&](int64_t begin, int64_t end) {
                backward(g + begin, x + begin, dx + begin, end - begin);
              });
            }};
  });
}

}  // namespace tidemark::elementwise
