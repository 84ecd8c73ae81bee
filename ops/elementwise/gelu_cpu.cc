#include "ops/elementwise/gelu.h"
#include "ops/elementwise/gelu_functors.h"
#include "ops/elementwise/kernels.h"
#include "ops/kernels/instruction_sets.h"
#include "ops/kernels/parallel_for.h"
#include "ops/kernels/vector_math.h"

namespace tidemark::elementwise {
namespace {

// y may be x, dx may be g or x: no restrict.
template <class F>
TIDEMARK_INLINE void forward_of(const float* x, float* y, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = F()(x[i]);
}
template <class F>
TIDEMARK_INLINE void backward_of(const float* g, const float* x, float* dx, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) dx[i] = F()(g[i], x[i]);
}

struct Loops {
  void (*forward[2])(const float* x, float* y, int64_t n);  // [GeluAttrs::tanh]
  void (*backward[2])(const float* g, const float* x, float* dx, int64_t n);
};

#define TIDEMARK_DEFINE_LOOPS(name, ...)                                                       \
  struct name {                                                                                \
    __VA_ARGS__ static void exact(const float* x, float* y, int64_t n) {                       \
      forward_of<Gelu<VectorMath>>(x, y, n);                                                   \
    }                                                                                          \
    __VA_ARGS__ static void tanh(const float* x, float* y, int64_t n) {                        \
      forward_of<GeluTanh<VectorMath>>(x, y, n);                                               \
    }                                                                                          \
    __VA_ARGS__ static void exact_grad(const float* g, const float* x, float* dx, int64_t n) { \
      backward_of<GeluGrad<VectorMath>>(g, x, dx, n);                                          \
    }                                                                                          \
    __VA_ARGS__ static void tanh_grad(const float* g, const float* x, float* dx, int64_t n) {  \
      backward_of<GeluTanhGrad<VectorMath>>(g, x, dx, n);                                      \
    }                                                                                          \
    static constexpr Loops table() { return {{exact, tanh}, {exact_grad, tanh_grad}}; }        \
  };
TIDEMARK_FOR_EACH_INSTRUCTION_SET(TIDEMARK_DEFINE_LOOPS)

const Loops& loops() {
  static const Loops best = best_instruction_set<Baseline, Avx2, Avx512>();
  return best;
}

constexpr int64_t kGrain = kSerialElements / 4;

}  // namespace

PreparedKernel prepare_gelu_cpu(const OpQuery& query) {
  const auto forward = loops().forward[query.attr<GeluAttrs>().tanh != 0];
  const int64_t n = query.outputs[0].shape.elements();
  return {Bytes(0), [=](const KernelArgs& args) {
            const float* x = args.in<float>(0);
            float* y = args.out<float>(0);
            parallel_chunks(n, kGrain, [&](int64_t begin, int64_t end) {
              forward(x + begin, y + begin, end - begin);
            });
          }};
}

PreparedKernel prepare_gelu_grad_cpu(const OpQuery& query) {
  const auto backward = loops().backward[query.attr<GeluAttrs>().tanh != 0];
  const int64_t n = query.outputs[0].shape.elements();
  return {Bytes(0), [=](const KernelArgs& args) {
            const float* g = args.in<float>(0);
            const float* x = args.in<float>(1);
            float* dx = args.out<float>(0);
            parallel_chunks(n, kGrain, [&](int64_t begin, int64_t end) {
              backward(g + begin, x + begin, dx + begin, end - begin);
            });
          }};
}

}  // namespace tidemark::elementwise
