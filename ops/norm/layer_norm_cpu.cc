// A row stays in the first-level cache: forward passes over it three times, backward twice,
// while memory is read and written once.
#include <algorithm>
#include <cmath>

#include "ops/kernels/instruction_sets.h"
#include "ops/kernels/parallel_for.h"
#include "ops/kernels/row_sum.h"
#include "ops/kernels/visit_dtype.h"
#include "ops/norm/layer_norm.h"
#include "ops/norm/row_stretches_cpu.h"

namespace tidemark {
namespace {

template <class T>
struct Value {
  const T* x;
  TIDEMARK_INLINE float operator()(int64_t i) const { return x[i]; }
};

template <class T>
struct SquaredDeviation {
  const T* x;
  float mean;
  TIDEMARK_INLINE float operator()(int64_t i) const {
    const float d = x[i] - mean;
    return d * d;
  }
};

template <class T>
TIDEMARK_INLINE void forward_of(const T* __restrict x, const float* __restrict gamma,
                                const float* __restrict beta, double eps, T* __restrict y,
                                float* __restrict means, float* __restrict rstds, int64_t rows,
                                int64_t columns) {
  const double share = 1.0 / static_cast<double>(columns);
  for (int64_t r = 0; r < rows; ++r, x += columns, y += columns) {
    const float mean = static_cast<float>(sum_over_row(columns, Value<T>{x}) * share);
    const double var = sum_over_row(columns, SquaredDeviation<T>{x, mean}) * share;
    const float rstd = static_cast<float>(1 / std::sqrt(var + eps));
    for (int64_t c = 0; c < columns; ++c) y[c] = (x[c] - mean) * rstd * gamma[c] + beta[c];
    means[r] = mean;
    rstds[r] = rstd;
  }
}

template <class T>
struct Grad {
  const T* x;
  const T* gy;
  const float* gamma;
  const float* mean;
  const float* rstd;
  T* gx;
};

// Adds one element to the sums: g and g * h over the row, gy * h and gy over rows.
#define TIDEMARK_ADD_ELEMENT(lane, c)   \
  const float h = (x[c] - mean) * rstd; \
  const float g = gy[c] * gamma[c];     \
  plain[lane] += g;                     \
  product[lane] += g * h;               \
  ggamma[c] += gy[c] * h;               \
  gbeta[c] += gy[c];

// Handles rows [first, first + rows) and writes their sums to ggamma and gbeta.
template <class T>
TIDEMARK_INLINE void backward_of(const Grad<T>& in, int64_t first, int64_t rows,
                                 int64_t columns, float* __restrict ggamma,
                                 float* __restrict gbeta) {
  const float* __restrict gamma = in.gamma;
  const float share = 1.0F / static_cast<float>(columns);
  for (int64_t c = 0; c < columns; ++c) ggamma[c] = gbeta[c] = 0;
  for (int64_t r = first; r < first + rows; ++r) {
    // No __restrict: gx may be x or gy.
    const T* x = in.x + r * columns;
    const T* gy = in.gy + r * columns;
    T* gx = in.gx + r * columns;
    const float mean = in.mean[r], rstd = in.rstd[r];
    double sum = 0, sum_product = 0;
    for (int64_t i = 0; i < columns;) {
      const int64_t end = std::min(columns, i + kSumRun);
      float plain[kSumLanes] = {}, product[kSumLanes] = {};
      for (; i + kSumLanes <= end; i += kSumLanes) {
        for (int64_t lane = 0; lane < kSumLanes; ++lane) {
          TIDEMARK_ADD_ELEMENT(lane, i + lane)
        }
      }
      for (int64_t lane = 0; i < end; ++i, ++lane) {
        TIDEMARK_ADD_ELEMENT(lane, i)
      }
      sum += add_lanes(plain);
      sum_product += add_lanes(product);
    }
    const float a = static_cast<float>(sum) * share;
    const float b = static_cast<float>(sum_product) * share;
    TIDEMARK_INDEPENDENT_ITERATIONS
    for (int64_t c = 0; c < columns; ++c) {
      const float h = (x[c] - mean) * rstd;
      gx[c] = rstd * ((gy[c] * gamma[c] - a) - h * b);
    }
  }
}

template <class T>
struct Loops {
  void (*forward)(const T* x, const float* gamma, const float* beta, double eps, T* y,
                  float* means, float* rstds, int64_t rows, int64_t columns);
  void (*backward)(const Grad<T>& in, int64_t first, int64_t rows, int64_t columns,
                   float* ggamma, float* gbeta);
};

#define TIDEMARK_DEFINE_LOOPS(name, ...)                                               \
  struct name {                                                                        \
    template <class T>                                                                 \
    __VA_ARGS__ static void forward(const T* x, const float* gamma, const float* beta, \
                                    double eps, T* y, float* means, float* rstds,      \
                                    int64_t rows, int64_t columns) {                   \
      forward_of(x, gamma, beta, eps, y, means, rstds, rows, columns);                 \
    }                                                                                  \
    template <class T>                                                                 \
    __VA_ARGS__ static void backward(const Grad<T>& in, int64_t first, int64_t rows,   \
                                     int64_t columns, float* ggamma, float* gbeta) {   \
      backward_of(in, first, rows, columns, ggamma, gbeta);                            \
    }                                                                                  \
    template <class T>                                                                 \
    static constexpr Loops<T> table() {                                                \
      return {forward<T>, backward<T>};                                                \
    }                                                                                  \
  };
TIDEMARK_TYPED_LOOPS(TIDEMARK_DEFINE_LOOPS)

template <class T>
void run_backward(const norm::RowStretches& stretches, int64_t columns,
                  const KernelArgs& args) {
  const Grad<T> in{args.in<T>(0),     args.in<T>(1),     args.in<float>(2),
                   args.in<float>(3), args.in<float>(4), args.out<T>(0)};
  float* const results[] = {args.out<float>(1), args.out<float>(2)};
  stretches.run(args.workspace, results, [&](int64_t first, int64_t rows, float* sums) {
    loops<T>().backward(in, first, rows, columns, sums, sums + columns);
  });
}

}  // namespace

PreparedKernel prepare_layer_norm_cpu(const OpQuery& query) {
  const int64_t columns = query.inputs[0].shape.back();
  const int64_t rows = query.inputs[0].shape.elements() / columns;
  const double eps = query.attr<LayerNormAttrs>().eps;
  return visit_float(query.inputs[0].dtype, [=]<class T>(TypeTag<T>) -> PreparedKernel {
    return {Bytes(0), [=](const KernelArgs& args) {
              const T* x = args.in<T>(0);
              T* y = args.out<T>(0);
              const int64_t grain = std::max<int64_t>(1, kSerialElements / columns);
              parallel_chunks(rows, grain, [&](int64_t begin, int64_t end) {
                loops<T>().forward(x + begin * columns, args.in<float>(1), args.in<float>(2),
                                   eps, y + begin * columns, args.out<float>(1) + begin,
                                   args.out<float>(2) + begin, end - begin, columns);
              });
            }};
  });
}

PreparedKernel prepare_layer_norm_grad_cpu(const OpQuery& query) {
  const Shape& x = query.inputs[0].shape;
  const int64_t columns = x.back();
  const norm::RowStretches stretches(x, 2);
  return visit_float(query.inputs[0].dtype, [=]<class T>(TypeTag<T>) -> PreparedKernel {
    return {stretches.workspace(),
            [=](const KernelArgs& args) { run_backward<T>(stretches, columns, args); }};
  });
}

}  // namespace tidemark
