#include <algorithm>

#include "ops/kernels/instruction_sets.h"
#include "ops/kernels/parallel_for.h"
#include "ops/kernels/row_sum.h"
#include "ops/kernels/visit_dtype.h"
#include "ops/loss/rows_cpu.h"

namespace tidemark::loss {
namespace {

// The maximum ignores NaN; the sum will be NaN.
template <class T>
TIDEMARK_INLINE float largest_of(const T* __restrict x, int64_t n) {
  float lanes[kSumLanes];
  for (float& lane : lanes) lane = x[0];
  int64_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes) {
    for (int64_t lane = 0; lane < kSumLanes; ++lane) {
      const float value = x[i + lane];
      lanes[lane] = value > lanes[lane] ? value : lanes[lane];
    }
  }
  float largest = lanes[0];
  for (const float lane : lanes) largest = lane > largest ? lane : largest;
  for (; i < n; ++i) largest = x[i] > largest ? float{x[i]} : largest;
  return largest;
}

template <class T>
struct Exponential {
  const T* x;
  float largest;
  TIDEMARK_INLINE float operator()(int64_t i) const {
    return VectorMath::exp_negative(x[i] - largest);
  }
};

template <class T>
TIDEMARK_INLINE RowSums sums_of(const T* x, int64_t classes) {
  const float largest = largest_of(x, classes);
  const double sum = sum_over_row(classes, Exponential<T>{x, largest});
  return {largest, static_cast<float>(1 / sum)};
}

// No __restrict: dx may be x.
template <class From, class To>
TIDEMARK_INLINE void gradient_of(const From* x, RowSums sums, float g, To* dx,
                                 int64_t classes) {
  const float factor = sums.inverse * g;
  TIDEMARK_INDEPENDENT_ITERATIONS
  for (int64_t c = 0; c < classes; ++c) {
    dx[c] = VectorMath::exp_negative(x[c] - sums.largest) * factor;
  }
}

template <class T>
using Loops = RowLoops<T>;

#define TIDEMARK_DEFINE_LOOPS(name, ...)                                          \
  struct name {                                                                   \
    template <class T>                                                            \
    __VA_ARGS__ static RowSums sums(const T* x, int64_t classes) {                \
      return sums_of(x, classes);                                                 \
    }                                                                             \
    template <class From, class To>                                               \
    __VA_ARGS__ static void gradient(const From* x, RowSums row, float g, To* dx, \
                                     int64_t classes) {                           \
      gradient_of(x, row, g, dx, classes);                                        \
    }                                                                             \
    template <class T>                                                            \
    static constexpr Loops<T> table() {                                           \
      return {sums<T>, gradient<T, T>, gradient<float, T>};                       \
    }                                                                             \
  };
TIDEMARK_TYPED_LOOPS(TIDEMARK_DEFINE_LOOPS)

float mean_loss(const Batch& batch, const int64_t* labels, const auto& log_prob) {
  return static_cast<float>(summed_loss(batch, labels, log_prob) / counted(batch, labels));
}

}  // namespace

template <class T>
const RowLoops<T>& row_loops() {
  return loops<T>();
}
template const RowLoops<float>& row_loops();
template const RowLoops<BFloat16>& row_loops();

PreparedKernel prepare_nll_loss_cpu(const OpQuery& query) {
  const Batch batch(query.inputs[0].shape[1], query.inputs[1]);
  return {Bytes(0), [batch](const KernelArgs& args) {
            const float* log_probs = args.in<float>(0);
            *args.out<float>(0) = mean_loss(batch, args.in<int64_t>(1),
                                            [&](int64_t row, int64_t label) -> double {
                                              return log_probs[row * batch.classes + label];
                                            });
          }};
}

PreparedKernel prepare_nll_loss_grad_cpu(const OpQuery& query) {
  const Batch batch(query.outputs[0].shape[1], query.inputs[1]);
  return {Bytes(0), [batch](const KernelArgs& args) {
            const float g = *args.in<float>(0) / static_cast<float>(batch.rows);
            const int64_t* labels = args.in<int64_t>(1);
            float* dx = args.out<float>(0);
            parallel_tasks(batch.rows, batch.classes, [&](int64_t row) {
              const int64_t label = labels[row * batch.label_step];
              float* to = dx + row * batch.classes;
              std::fill_n(to, batch.classes, batch.valid(label) ? 0 : kNaN);
              if (batch.valid(label)) to[label] = -g;
            });
          }};
}

PreparedKernel prepare_cross_entropy_cpu(const OpQuery& query) {
  const Batch batch(query.inputs[0].shape[1], query.inputs[1], query.attr<CrossEntropyAttrs>());
  return visit_float(query.inputs[0].dtype, [&]<class T>(TypeTag<T>) -> PreparedKernel {
    const auto sums_of_row = loops<T>().sums;
    return {Bytes(0), [batch, sums_of_row](const KernelArgs& args) {
              const T* logits = args.in<T>(0);
              RowSums* sums = reinterpret_cast<RowSums*>(args.out<float>(1));
              if (batch.classes > 0) {
                parallel_tasks(batch.rows, kExpElements * batch.classes, [&](int64_t row) {
                  sums[row] = sums_of_row(logits + row * batch.classes, batch.classes);
                });
              }
              *args.out<float>(0) =
                  mean_loss(batch, args.in<int64_t>(1), [&](int64_t row, int64_t label) {
                    return log_prob(logits[row * batch.classes + label], sums[row]);
                  });
            }};
  });
}

PreparedKernel prepare_cross_entropy_grad_cpu(const OpQuery& query) {
  const Batch batch(query.inputs[1].shape[1], query.inputs[2], query.attr<CrossEntropyAttrs>());
  return visit_float(query.inputs[1].dtype, [&]<class T>(TypeTag<T>) -> PreparedKernel {
    const auto gradient_of_row = loops<T>().gradient;
    return {Bytes(0), [batch, gradient_of_row](const KernelArgs& args) {
              const T* logits = args.in<T>(1);
              const int64_t* labels = args.in<int64_t>(2);
              const RowSums* sums = reinterpret_cast<const RowSums*>(args.in<float>(3));
              const float g = *args.in<float>(0) / static_cast<float>(counted(batch, labels));
              T* dx = args.out<T>(0);
              parallel_tasks(batch.rows, kExpElements * batch.classes, [&](int64_t row) {
                const int64_t label = labels[row * batch.label_step];
                write_gradient(batch, gradient_of_row, logits + row * batch.classes, label,
                               sums[row], g, dx + row * batch.classes);
              });
            }};
  });
}

}  // namespace tidemark::loss
