// A row stays in the first-level cache, forward and backward pass over it twice, while memory
// is read and written once.
#include <algorithm>
#include <cmath>

#include "ops/kernels/instruction_sets.h"
#include "ops/kernels/parallel_for.h"
#include "ops/kernels/row_sum.h"
#include "ops/kernels/visit_dtype.h"
#include "ops/norm/rms_norm.h"
#include "ops/norm/row_stretches_cpu.h"

namespace tidemark {
namespace {

template <class T>
struct Square {
  const T* x;
  TIDEMARK_INLINE float operator()(int64_t i) const {
    const float value = x[i];
    return value * value;
  }
};

template <class T>
struct Forward {
  const T* x;
  const float* weight;
  T* y;
  float* rstd;
  double eps;
  int64_t columns;
};

template <class T>
TIDEMARK_INLINE void forward_of(const Forward<T>& in, int64_t first, int64_t rows) {
  const int64_t columns = in.columns;
  const double share = 1.0 / static_cast<double>(columns);
  const float* __restrict weight = in.weight;
  for (int64_t r = first; r < first + rows; ++r) {
    const T* __restrict x = in.x + r * columns;
    T* __restrict y = in.y + r * columns;
    const double square = sum_over_row(columns, Square<T>{x}) * share;
    const float rstd = static_cast<float>(1 / std::sqrt(square + in.eps));
    for (int64_t c = 0; c < columns; ++c) y[c] = x[c] * rstd * weight[c];
    in.rstd[r] = rstd;
  }
}

template <class T>
struct Grad {
  const T* x;
  const T* gy;
  const float* weight;
  const float* rstd;
  T* gx;
  int64_t columns;
};

// Handles rows [first, first + rows). With kWeight, writes their sums of gy * h to gweight.
template <bool kWeight, class T>
TIDEMARK_INLINE void backward_of(const Grad<T>& in, int64_t first, int64_t rows,
                                 float* __restrict gweight) {
  const int64_t columns = in.columns;
  const double share = 1.0 / static_cast<double>(columns);
  const float* __restrict weight = in.weight;
  if (kWeight) {
    for (int64_t c = 0; c < columns; ++c) gweight[c] = 0;
  }
  for (int64_t r = first; r < first + rows; ++r) {
    // No __restrict: gx may be x or gy.
    const T* x = in.x + r * columns;
    const T* gy = in.gy + r * columns;
    T* gx = in.gx + r * columns;
    const float rstd = in.rstd[r];
    double sum = 0;
    for (int64_t i = 0; i < columns;) {
      const int64_t end = std::min(columns, i + kSumRun);
      float lanes[kSumLanes] = {};
      for (; i + kSumLanes <= end; i += kSumLanes) {
        for (int64_t lane = 0; lane < kSumLanes; ++lane) {
          const float product = gy[i + lane] * (x[i + lane] * rstd);
          lanes[lane] += product * weight[i + lane];
          if (kWeight) gweight[i + lane] += product;
        }
      }
      for (int64_t lane = 0; i < end; ++i, ++lane) {
        const float product = gy[i] * (x[i] * rstd);
        lanes[lane] += product * weight[i];
        if (kWeight) gweight[i] += product;
      }
      sum += add_lanes(lanes);
    }
    const float mean = static_cast<float>(sum * share);
    TIDEMARK_INDEPENDENT_ITERATIONS
    for (int64_t c = 0; c < columns; ++c) {
      gx[c] = rstd * (gy[c] * weight[c] - x[c] * rstd * mean);
    }
  }
}

template <class T>
struct Loops {
  void (*forward)(const Forward<T>& in, int64_t first, int64_t rows);
  void (*backward)(const Grad<T>& in, int64_t first, int64_t rows, float* gweight);
  void (*frozen)(const Grad<T>& in, int64_t first, int64_t rows);
};

#define TIDEMARK_DEFINE_LOOPS(name, ...)                                                 \
  struct name {                                                                          \
    template <class T>                                                                   \
    __VA_ARGS__ static void forward(const Forward<T>& in, int64_t first, int64_t rows) { \
      forward_of(in, first, rows);                                                       \
    }                                                                                    \
    template <class T>                                                                   \
    __VA_ARGS__ static void backward(const Grad<T>& in, int64_t first, int64_t rows,     \
                                     float* gweight) {                                   \
      backward_of<true>(in, first, rows, gweight);                                       \
    }                                                                                    \
    template <class T>                                                                   \
    __VA_ARGS__ static void frozen(const Grad<T>& in, int64_t first, int64_t rows) {     \
      backward_of<false>(in, first, rows, nullptr);                                      \
    }                                                                                    \
    template <class T>                                                                   \
    static constexpr Loops<T> table() {                                                  \
      return {forward<T>, backward<T>, frozen<T>};                                       \
    }                                                                                    \
  };
TIDEMARK_TYPED_LOOPS(TIDEMARK_DEFINE_LOOPS)

}  // namespace

PreparedKernel prepare_rms_norm_cpu(const OpQuery& query) {
  const int64_t columns = query.inputs[0].shape.back();
  const int64_t rows = query.inputs[0].shape.elements() / columns;
  const double eps = query.attr<RmsNormAttrs>().eps;
  return visit_float(query.inputs[0].dtype, [=]<class T>(TypeTag<T>) -> PreparedKernel {
    return {Bytes(0), [=](const KernelArgs& args) {
              const Forward<T> in{
                  args.in<T>(0), args.in<float>(1), args.out<T>(0), args.out<float>(1), eps,
                  columns};
              const int64_t grain = std::max<int64_t>(1, kSerialElements / columns);
              parallel_chunks(rows, grain, [&](int64_t begin, int64_t end) {
                loops<T>().forward(in, begin, end - begin);
              });
            }};
  });
}

PreparedKernel prepare_rms_norm_grad_cpu(const OpQuery& query) {
  const Shape& x = query.inputs[0].shape;
  const int64_t columns = x.back(), rows = x.elements() / columns;
  const bool frozen = query.attr<RmsNormGradAttrs>().frozen != 0;
  const norm::RowStretches stretches(x, 1);
  return visit_float(query.inputs[0].dtype, [=]<class T>(TypeTag<T>) -> PreparedKernel {
    const auto inputs = [columns](const KernelArgs& args) {
      return Grad<T>{args.in<T>(0),     args.in<T>(1),  args.in<float>(2),
                     args.in<float>(3), args.out<T>(0), columns};
    };
    if (frozen) {
      return {Bytes(0), [=](const KernelArgs& args) {
                const Grad<T> in = inputs(args);
                const int64_t grain = std::max<int64_t>(1, kSerialElements / columns);
                parallel_chunks(rows, grain, [&](int64_t begin, int64_t end) {
                  loops<T>().frozen(in, begin, end - begin);
                });
              }};
    }
    return {stretches.workspace(), [=](const KernelArgs& args) {
              const Grad<T> in = inputs(args);
              float* const results[] = {args.out<float>(1)};
              stretches.run(args.workspace, results,
                            [&](int64_t first, int64_t count, float* sums) {
                              loops<T>().backward(in, first, count, sums);
                            });
            }};
  });
}

}  // namespace tidemark
