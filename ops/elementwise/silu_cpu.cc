// silu (unary.h) and silu_mul, whose exponentials are worth loops for each instruction set.
#include "ops/elementwise/functors.h"
#include "ops/elementwise/kernels.h"
#include "ops/kernels/instruction_sets.h"
#include "ops/kernels/map_cpu.h"
#include "ops/kernels/parallel_for.h"
#include "ops/kernels/vector_math.h"
#include "ops/kernels/visit_dtype.h"

namespace tidemark::elementwise {
namespace {

// No __restrict: an output may be one of the inputs.
template <class F, class T>
TIDEMARK_INLINE void map_of(const T* x, T* y, int64_t n) {
  TIDEMARK_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < n; ++i) y[i] = F()(x[i]);
}
template <class F, class T>
TIDEMARK_INLINE void map_of(const T* a, const T* b, T* y, int64_t n) {
  TIDEMARK_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < n; ++i) y[i] = F()(a[i], b[i]);
}
template <class T>
TIDEMARK_INLINE void gradients_of(const T* g, const T* gate, const T* up, T* dgate, T* dup,
                                  int64_t n) {
  TIDEMARK_INDEPENDENT_ITERATIONS
  for (int64_t i = 0; i < n; ++i) {
    // Read before written: references to one element could be the same.
    const float one_g = g[i], one_gate = gate[i], one_up = up[i];
    SiluMulGrad<VectorMath>()(dgate[i], dup[i], one_g, one_gate, one_up);
  }
}

template <class T>
struct Loops {
  void (*silu)(const T* x, T* y, int64_t n);
  void (*silu_grad)(const T* g, const T* x, T* dx, int64_t n);
  void (*silu_mul)(const T* gate, const T* up, T* y, int64_t n);
  void (*silu_mul_grad)(const T* g, const T* gate, const T* up, T* dgate, T* dup, int64_t n);
};

#define TIDEMARK_DEFINE_LOOPS(name, ...)                                                    \
  struct name {                                                                             \
    template <class T>                                                                      \
    __VA_ARGS__ static void silu(const T* x, T* y, int64_t n) {                             \
      map_of<Silu<VectorMath>>(x, y, n);                                                    \
    }                                                                                       \
    template <class T>                                                                      \
    __VA_ARGS__ static void silu_grad(const T* g, const T* x, T* dx, int64_t n) {           \
      map_of<SiluGrad<VectorMath>>(g, x, dx, n);                                            \
    }                                                                                       \
    template <class T>                                                                      \
    __VA_ARGS__ static void silu_mul(const T* gate, const T* up, T* y, int64_t n) {         \
      map_of<SiluMul<VectorMath>>(gate, up, y, n);                                          \
    }                                                                                       \
    template <class T>                                                                      \
    __VA_ARGS__ static void silu_mul_grad(const T* g, const T* gate, const T* up, T* dgate, \
                                          T* dup, int64_t n) {                              \
      gradients_of(g, gate, up, dgate, dup, n);                                             \
    }                                                                                       \
    template <class T>                                                                      \
    static constexpr Loops<T> table() {                                                     \
      return {silu<T>, silu_grad<T>, silu_mul<T>, silu_mul_grad<T>};                        \
    }                                                                                       \
  };
TIDEMARK_TYPED_LOOPS(TIDEMARK_DEFINE_LOOPS)

constexpr int64_t kGrain = kSerialElements / 4;

// y = f(x) of gapless tensors.
template <class T>
PreparedKernel map_one(int64_t n, void (*loop)(const T*, T*, int64_t)) {
  return {Bytes(0), [=](const KernelArgs& args) {
            const T* x = args.in<T>(0);
            T* y = args.out<T>(0);
            parallel_chunks(n, kGrain, [&](int64_t begin, int64_t end) {
              loop(x + begin, y + begin, end - begin);
            });
          }};
}
// y = f(a, b)
template <class T>
PreparedKernel map_two(int64_t n, void (*loop)(const T*, const T*, T*, int64_t)) {
  return {Bytes(0), [=](const KernelArgs& args) {
            const T* a = args.in<T>(0);
            const T* b = args.in<T>(1);
            T* y = args.out<T>(0);
            parallel_chunks(n, kGrain, [&](int64_t begin, int64_t end) {
              loop(a + begin, b + begin, y + begin, end - begin);
            });
          }};
}

bool gapless(const OpQuery& query) {
  for (const TensorMeta& input : query.inputs) {
    if (!input.is_contiguous()) return false;
  }
  return true;
}

}  // namespace

PreparedKernel prepare_silu_cpu(const OpQuery& query) {
  if (!gapless(query)) return map_floats_cpu<Silu<VectorMath>, 1>(query);
  const TensorMeta& y = query.outputs[0];
  return visit_float(y.dtype, [&]<class T>(TypeTag<T>) {
    return map_one<T>(y.shape.elements(), loops<T>().silu);
  });
}

PreparedKernel prepare_silu_grad_cpu(const OpQuery& query) {
  if (!gapless(query)) return map_floats_cpu<SiluGrad<VectorMath>, 2>(query);
  const TensorMeta& dx = query.outputs[0];
  return visit_float(dx.dtype, [&]<class T>(TypeTag<T>) {
    return map_two<T>(dx.shape.elements(), loops<T>().silu_grad);
  });
}

PreparedKernel prepare_silu_mul_cpu(const OpQuery& query) {
  const TensorMeta& y = query.outputs[0];
  return visit_float(y.dtype, [&]<class T>(TypeTag<T>) {
    return map_two<T>(y.shape.elements(), loops<T>().silu_mul);
  });
}

PreparedKernel prepare_silu_mul_grad_cpu(const OpQuery& query) {
  const int64_t n = query.outputs[0].shape.elements();
  return visit_float(query.outputs[0].dtype, [&]<class T>(TypeTag<T>) -> PreparedKernel {
    const auto loop = loops<T>().silu_mul_grad;
    return {Bytes(0), [=](const KernelArgs& args) {
              const T *g = args.in<T>(0), *gate = args.in<T>(1), *up = args.in<T>(2);
              T *dgate = args.out<T>(0), *dup = args.out<T>(1);
              parallel_chunks(n, kGrain, [&](int64_t begin, int64_t end) {
                loop(g + begin, gate + begin, up + begin, dgate + begin, dup + begin,
                     end - begin);
              });
            }};
  });
}

}  // namespace tidemark::elementwise
