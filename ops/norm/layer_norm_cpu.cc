// A row stays in the first-level cache: forward passes over it three times, backward twice,
// while memory is read and written once. Sums over rows are split into stretches that depend on
// the shape alone.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "ops/kernels/instruction_sets.h"
#include "ops/kernels/parallel_for.h"
#include "ops/kernels/row_sum.h"
#include "ops/kernels/visit_dtype.h"
#include "ops/norm/layer_norm.h"

namespace tidemark {
namespace {

// Gradients are summed in double over blocks of this many rows.
constexpr int64_t kBlockRows = 128;

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

// Stretches of rows for the sums over rows. In the workspace, each stretch has two rows of
// double (its sums) and two of float (the sums of a block).
struct Stretches {
  static constexpr int64_t kMost = 64;  // enough to keep threads evenly busy
  static constexpr int64_t kLeastRows = 16;

  int64_t rows, columns, count, rows_each, stride;

  explicit Stretches(const Shape& x)
      : rows(x.elements() / x.back()),
        columns(x.back()),
        rows_each(std::max(kLeastRows, (rows + kMost - 1) / kMost)),
        stride(align_up(Bytes(columns * 24), Bytes(64)).count()) {
    count = (rows + rows_each - 1) / rows_each;
  }
  Bytes workspace() const { return Bytes(count * stride); }
  double* sums(std::byte* at, int64_t stretch, int64_t which) const {
    return reinterpret_cast<double*>(at + stretch * stride) + which * columns;
  }
  float* block(std::byte* at, int64_t stretch, int64_t which) const {
    return reinterpret_cast<float*>(sums(at, stretch, 2)) + which * columns;
  }
};

template <class T>
void run_backward(const Stretches& stretches, const KernelArgs& args) {
  const Grad<T> in{args.in<T>(0),     args.in<T>(1),     args.in<float>(2),
                   args.in<float>(3), args.in<float>(4), args.out<T>(0)};
  const int64_t columns = stretches.columns;
  parallel_tasks(stretches.count, stretches.rows_each * columns, [&](int64_t stretch) {
    double* ggamma = stretches.sums(args.workspace, stretch, 0);
    double* gbeta = stretches.sums(args.workspace, stretch, 1);
    float* block_ggamma = stretches.block(args.workspace, stretch, 0);
    float* block_gbeta = stretches.block(args.workspace, stretch, 1);
    std::memset(ggamma, 0, static_cast<size_t>(columns) * 16);
    const int64_t end = std::min(stretches.rows, (stretch + 1) * stretches.rows_each);
    for (int64_t row = stretch * stretches.rows_each; row < end; row += kBlockRows) {
      loops<T>().backward(in, row, std::min(kBlockRows, end - row), columns, block_ggamma,
                          block_gbeta);
      for (int64_t c = 0; c < columns; ++c) {
        ggamma[c] += block_ggamma[c];
        gbeta[c] += block_gbeta[c];
      }
    }
  });
  float* ggamma = args.out<float>(1);
  float* gbeta = args.out<float>(2);
  parallel_tasks(columns, 2 * stretches.count, [&](int64_t c) {
    double gamma_sum = 0, beta_sum = 0;
    for (int64_t stretch = 0; stretch < stretches.count; ++stretch) {
      gamma_sum += stretches.sums(args.workspace, stretch, 0)[c];
      beta_sum += stretches.sums(args.workspace, stretch, 1)[c];
    }
    ggamma[c] = static_cast<float>(gamma_sum);
    gbeta[c] = static_cast<float>(beta_sum);
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
  const Stretches stretches(query.inputs[0].shape);
  return visit_float(query.inputs[0].dtype, [=]<class T>(TypeTag<T>) -> PreparedKernel {
    return {stretches.workspace(),
            [stretches](const KernelArgs& args) { run_backward<T>(stretches, args); }};
  });
}

}  // namespace tidemark
