#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/kernels/parallel_for.h"
#include "ops/loss/kernels.h"
#include "ops/loss/log_softmax_cpu.h"

namespace tidemark::loss {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct Batch {
  // From what is known of the scores (N, C) and labels (N).
  Batch(int64_t class_count, const TensorMeta& labels, const CrossEntropyAttrs& cross = {})
      : rows(labels.shape[0]),
        classes(class_count),
        label_step(labels.strides[0]),
        attrs(cross) {}

  bool valid(int64_t label) const { return label >= 0 && label < classes; }
  bool ignored(int64_t label) const { return attrs.ignores && label == attrs.ignored; }

  // Rows that count. Where none does, 1: what is divided by it is 0.
  double counted(const int64_t* labels) const {
    if (!attrs.ignores) return static_cast<double>(rows);
    int64_t count = 0;
    for (int64_t row = 0; row < rows; ++row) count += !ignored(labels[row * label_step]);
    return static_cast<double>(std::max<int64_t>(1, count));
  }

  float mean_loss(const float* log_probs, const int64_t* labels) const {
    double sum = 0;
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t label = labels[row * label_step];
      if (ignored(label)) continue;
      sum -= valid(label) ? log_probs[row * classes + label] : kNaN;
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
            *args.out<float>(0) = batch.mean_loss(args.in<float>(0), args.in<int64_t>(1));
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
  return {Bytes(0), [batch](const KernelArgs& args) {
            const float* logits = args.in<float>(0);
            float* log_probs = args.out<float>(1);
            if (batch.classes > 0) {
              parallel_tasks(batch.rows, kExpElements * batch.classes, [&](int64_t row) {
                log_softmax_row(logits + row * batch.classes, log_probs + row * batch.classes,
                                batch.classes);
              });
            }
            *args.out<float>(0) = batch.mean_loss(log_probs, args.in<int64_t>(1));
          }};
}

PreparedKernel prepare_cross_entropy_grad_cpu(const OpQuery& query) {
  const Batch batch(query.inputs[1].shape[1], query.inputs[2], query.attr<CrossEntropyAttrs>());
  return {Bytes(0), [batch](const KernelArgs& args) {
            const float* log_probs = args.in<float>(1);
            const int64_t* labels = args.in<int64_t>(2);
            const float g = *args.in<float>(0) / static_cast<float>(batch.counted(labels));
            float* dx = args.out<float>(0);
            parallel_tasks(batch.rows, kExpElements * batch.classes, [&](int64_t row) {
              const int64_t label = labels[row * batch.label_step];
              const float* from = log_probs + row * batch.classes;
              float* to = dx + row * batch.classes;
              if (batch.ignored(label) || !batch.valid(label)) {
                std::fill_n(to, batch.classes, batch.ignored(label) ? 0 : kNaN);
                return;
              }
              for (int64_t c = 0; c < batch.classes; ++c) to[c] = std::exp(from[c]) * g;
              to[label] = (std::exp(from[label]) - 1) * g;
            });
          }};
}

}  // namespace tidemark::loss
