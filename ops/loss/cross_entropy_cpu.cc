#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/kernels/instruction_sets.h"
#include "ops/kernels/parallel_for.h"
#include "ops/kernels/row_sum.h"
#include "ops/kernels/vector_math.h"
#include "ops/kernels/visit_dtype.h"
#include "ops/loss/kernels.h"

namespace tidemark::loss {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

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
template <class T>
TIDEMARK_INLINE void gradient_of(const T* x, RowSums sums, float g, T* dx, int64_t classes) {
  const float factor = sums.inverse * g;
  TIDEMARK_INDEPENDENT_ITERATIONS
  for (int64_t c = 0; c < classes; ++c) {
    dx[c] = VectorMath::exp_negative(x[c] - sums.largest) * factor;
  }
}

template <class T>
struct Loops {
  RowSums (*sums)(const T* x, int64_t classes);
  // Gradients of all classes as if none were the label.
  void (*gradient)(const T* x, RowSums sums, float g, T* dx, int64_t classes);
};

#define TIDEMARK_DEFINE_LOOPS(name, ...)                                      \
  struct name {                                                               \
    template <class T>                                                        \
    __VA_ARGS__ static RowSums sums(const T* x, int64_t classes) {            \
      return sums_of(x, classes);                                             \
    }                                                                         \
    template <class T>                                                        \
    __VA_ARGS__ static void gradient(const T* x, RowSums row, float g, T* dx, \
                                     int64_t classes) {                       \
      gradient_of(x, row, g, dx, classes);                                    \
    }                                                                         \
    template <class T>                                                        \
    static constexpr Loops<T> table() {                                       \
      return {sums<T>, gradient<T>};                                          \
    }                                                                         \
  };
TIDEMARK_TYPED_LOOPS(TIDEMARK_DEFINE_LOOPS)

// An exponential counts as this many elements when work is split among threads.
constexpr int64_t kExpElements = 4;

struct Batch {
  // Takes the known properties of the scores (N, C) and labels (N).
  Batch(int64_t class_count, const TensorMeta& labels, const CrossEntropyAttrs& cross = {})
      : rows(labels.shape[0]),
        classes(class_count),
        label_step(labels.strides[0]),
        attrs(cross) {}

  bool valid(int64_t label) const { return label >= 0 && label < classes; }
  bool ignored(int64_t label) const { return attrs.ignores && label == attrs.ignored; }

  // The number of rows that count; 1 if none does, as it divides a sum that is 0.
  double counted(const int64_t* labels) const {
    if (!attrs.ignores) return static_cast<double>(rows);
    int64_t count = 0;
    for (int64_t row = 0; row < rows; ++row) count += !ignored(labels[row * label_step]);
    return static_cast<double>(std::max<int64_t>(1, count));
  }

  // The mean of -log_prob(row, label).
  template <class LogProb>
  float mean_loss(const int64_t* labels, const LogProb& log_prob) const {
    double sum = 0;
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t label = labels[row * label_step];
      if (ignored(label)) continue;
      sum -= valid(label) ? log_prob(row, label) : double{kNaN};
    }
    return static_cast<float>(sum / counted(labels));
  }

  int64_t rows;
  int64_t classes;
  int64_t label_step;
  CrossEntropyAttrs attrs;
};

}  // namespace

PreparedKernel prepare_nll_loss_cpu(const OpQuery& query) {
  const Batch batch(query.inputs[0].shape[1], query.inputs[1]);
  return {Bytes(0), [batch](const KernelArgs& args) {
            const float* log_probs = args.in<float>(0);
            *args.out<float>(0) =
                batch.mean_loss(args.in<int64_t>(1), [&](int64_t row, int64_t label) -> double {
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
                  batch.mean_loss(args.in<int64_t>(1), [&](int64_t row, int64_t label) {
                    const double score = logits[row * batch.classes + label];
                    return score - sums[row].largest + std::log(double{sums[row].inverse});
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
              const float g = *args.in<float>(0) / static_cast<float>(batch.counted(labels));
              T* dx = args.out<T>(0);
              parallel_tasks(batch.rows, kExpElements * batch.classes, [&](int64_t row) {
                const int64_t label = labels[row * batch.label_step];
                const T* from = logits + row * batch.classes;
                T* to = dx + row * batch.classes;
                if (batch.ignored(label) || !batch.valid(label)) {
                  std::fill_n(to, batch.classes, T(batch.ignored(label) ? 0 : kNaN));
                  return;
                }
                const float probability =
                    VectorMath::exp_negative(from[label] - sums[row].largest) *
                    sums[row].inverse;
                gradient_of_row(from, sums[row], g, to, batch.classes);  // may overwrite `from`
                to[label] = (probability - 1) * g;
              });
            }};
  });
}

}  // namespace tidemark::loss
