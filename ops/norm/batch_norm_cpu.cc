// Each thread takes one stretch of rows. The moments read x once; backward reads x and gy
// twice. Stretches depend on the number of threads that the signature names, and are combined
// in order, so results repeat to the bit.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "ops/elementwise/relu.h"
#include "ops/kernels/parallel_for.h"
#include "ops/kernels/visit_dtype.h"
#include "ops/norm/batch_norm.h"
#include "ops/norm/batch_norm_loops.h"

namespace tidemark {
namespace {

struct Plan {
  int64_t rows;
  int64_t channels;
  int64_t stretches;
  int64_t stretch_rows;
  // Byte offsets in the workspace. Each stretch has two rows of double (its sums) and two of
  // float (the sums of a block); behind them come shared rows of float.
  int64_t stride;
  int64_t shared;
  Bytes workspace;

  Plan(const OpQuery& query, int64_t shared_rows) {
    const Shape& x = query.inputs[0].shape;
    channels = x.back();
    rows = x.elements() / channels;
    // A stretch must be worth waking a thread for.
    const int64_t most = std::max<int64_t>(1, rows * channels / kSerialElements);
    stretches = std::clamp<int64_t>(query.threads, 1, std::min(most, rows));
    stretch_rows = (rows + stretches - 1) / stretches;
    stretches = (rows + stretch_rows - 1) / stretch_rows;
    stride = align_up(Bytes(channels * 24), Bytes(64)).count();
    shared = stretches * stride;
    workspace = Bytes(shared) + Bytes(channels * 4 * shared_rows);
  }

  double* sums(std::byte* workspace_at, int64_t stretch, int64_t which) const {
    return reinterpret_cast<double*>(workspace_at + stretch * stride) + which * channels;
  }
  float* block(std::byte* workspace_at, int64_t stretch, int64_t which) const {
    return reinterpret_cast<float*>(sums(workspace_at, stretch, 2)) + which * channels;
  }
  float* row(std::byte* workspace_at, int64_t which) const {
    return reinterpret_cast<float*>(workspace_at + shared) + which * channels;
  }

  // f(stretch, first row, rows)
  template <class F>
  void for_each_stretch(const F& f) const {
    parallel_tasks(stretches, stretch_rows * channels, [&](int64_t stretch) {
      const int64_t first = stretch * stretch_rows;
      f(stretch, first, std::min(stretch_rows, rows - first));
    });
  }
};

// Chan, Golub and LeVeque: merges the moments of two sets of values into those of the first.
void merge_moments(double count, double more, double& mean, double& squares, double more_mean,
                   double more_squares) {
  const double delta = more_mean - mean;
  const double total = count + more;
  mean += delta * (more / total);
  squares += more_squares + delta * delta * (count * more / total);
}

template <class T>
void moments(const Plan& plan, const T* x, std::byte* workspace, float* mean, float* var) {
  const BatchNormLoops<T>& loops = batch_norm_loops<T>();
  const int64_t channels = plan.channels;
  plan.for_each_stretch([&](int64_t stretch, int64_t first, int64_t rows) {
    double* means = plan.sums(workspace, stretch, 0);
    double* squares = plan.sums(workspace, stretch, 1);
    float* block_mean = plan.block(workspace, stretch, 0);
    float* block_squares = plan.block(workspace, stretch, 1);
    std::memset(means, 0, static_cast<size_t>(channels) * 16);
    const int64_t step = block_rows(channels);
    for (int64_t r = 0; r < rows; r += step) {
      const int64_t count = std::min(step, rows - r);
      loops.moments(x + (first + r) * channels, count, channels, block_mean, block_squares);
      for (int64_t c = 0; c < channels; ++c) {
        merge_moments(static_cast<double>(r), static_cast<double>(count), means[c], squares[c],
                      block_mean[c], block_squares[c]);
      }
    }
  });
  double* total_mean = plan.sums(workspace, 0, 0);
  double* total_squares = plan.sums(workspace, 0, 1);
  for (int64_t stretch = 1; stretch < plan.stretches; ++stretch) {
    const int64_t before = stretch * plan.stretch_rows;
    const int64_t count = std::min(plan.stretch_rows, plan.rows - before);
    const double* stretch_mean = plan.sums(workspace, stretch, 0);
    const double* stretch_squares = plan.sums(workspace, stretch, 1);
    for (int64_t c = 0; c < channels; ++c) {
      merge_moments(static_cast<double>(before), static_cast<double>(count), total_mean[c],
                    total_squares[c], stretch_mean[c], stretch_squares[c]);
    }
  }
  for (int64_t c = 0; c < channels; ++c) {
    mean[c] = static_cast<float>(total_mean[c]);
    var[c] = static_cast<float>(total_squares[c] / static_cast<double>(plan.rows));
  }
}

template <class T>
void normalise(const KernelArgs& args) {
  const auto& attrs = args.attr<BatchNormAttrs>();
  const BatchNormLoops<T>& all = batch_norm_loops<T>();
  const ActivatedLoops<T>& loops = all.with(Activation{attrs.activation});
  const int64_t channels = args.input_metas[0].shape.back();
  const int64_t rows = args.input_metas[0].shape.elements() / channels;
  const T* x = args.in<T>(0);
  const T* residual = args.inputs.size() == 6 ? args.in<T>(5) : nullptr;
  T* y = args.out<T>(0);
  float* scale = reinterpret_cast<float*>(args.workspace);
  float* shift = scale + channels;
  fold_batch_norm(channels, attrs.eps, args.in<float>(1), args.in<float>(2), args.in<float>(3),
                  args.in<float>(4), scale, shift);
  const auto affine = [&](int64_t begin, int64_t end) {
    const int64_t at = begin * channels;
    loops.affine(x + at, scale, shift, residual ? residual + at : nullptr, y + at, end - begin,
                 channels);
  };
  const int64_t grain = std::max<int64_t>(1, kSerialElements / channels);
  if (!residual) return parallel_chunks(rows, grain, affine);
  // Signs are read off y while it is in the cache, from blocks of rows that fill whole words.
  auto* signs = args.out<uint32_t>(1);
  const int64_t whole = kSignsPerWord / std::gcd(kSignsPerWord, channels);
  const int64_t step = std::max(block_rows(channels) / 4 / whole, int64_t{1}) * whole;
  parallel_chunks((rows + step - 1) / step, std::max<int64_t>(1, grain / step),
                  [&](int64_t first, int64_t last) {
                    for (int64_t row = first * step; row < std::min(last * step, rows);
                         row += step) {
                      const int64_t end = std::min(row + step, rows);
                      affine(row, end);
                      all.signs(y + row * channels, (end - row) * channels,
                                signs + row * channels / kSignsPerWord);
                    }
                  });
}

template <class T>
void run_backward(const Plan& plan, const KernelArgs& args) {
  const auto& attrs = args.attr<BatchNormGradAttrs>();
  const ActivatedLoops<T>& loops = batch_norm_loops<T>().with(Activation{attrs.activation});
  const int64_t channels = plan.channels;
  const T* x = args.in<T>(0);
  const T* gy = args.in<T>(1);
  const float* mean = args.in<float>(3);
  const float* var = args.in<float>(4);
  float* scale = plan.row(args.workspace, 0);
  const float* beta = attrs.activation != 0 ? args.in<float>(5) : nullptr;
  float* shift = beta ? plan.row(args.workspace, 1) : nullptr;
  float* slope = plan.row(args.workspace, 2);
  float* constant = plan.row(args.workspace, 3);
  fold_batch_norm(channels, attrs.eps, args.in<float>(2), beta, mean, var, scale, shift);
  const GradChannels channel{mean, scale, shift ? shift : scale, slope, constant};

  plan.for_each_stretch([&](int64_t stretch, int64_t first, int64_t rows) {
    double* sum = plan.sums(args.workspace, stretch, 0);
    double* product = plan.sums(args.workspace, stretch, 1);
    float* block_sum = plan.block(args.workspace, stretch, 0);
    float* block_product = plan.block(args.workspace, stretch, 1);
    std::memset(sum, 0, static_cast<size_t>(channels) * 16);
    const int64_t step = block_rows(channels);
    for (int64_t r = 0; r < rows; r += step) {
      const int64_t at = (first + r) * channels;
      loops.grad_sums(x + at, gy + at, channel, block_sum, block_product,
                      std::min(step, rows - r), channels);
      for (int64_t c = 0; c < channels; ++c) {
        sum[c] += block_sum[c];
        product[c] += block_product[c];
      }
    }
  });
  double* sum = plan.sums(args.workspace, 0, 0);
  double* product = plan.sums(args.workspace, 0, 1);
  for (int64_t stretch = 1; stretch < plan.stretches; ++stretch) {
    for (int64_t c = 0; c < channels; ++c) {
      sum[c] += plan.sums(args.workspace, stretch, 0)[c];
      product[c] += plan.sums(args.workspace, stretch, 1)[c];
    }
  }
  const double count = static_cast<double>(plan.rows);
  for (int64_t c = 0; c < channels; ++c) {
    const double variance = double{var[c]} + attrs.eps;
    args.out<float>(1)[c] = static_cast<float>(product[c] / std::sqrt(variance));
    args.out<float>(2)[c] = static_cast<float>(sum[c]);
    slope[c] =
        attrs.frozen ? 0 : static_cast<float>(-scale[c] * product[c] / (variance * count));
    constant[c] = attrs.frozen ? 0 : static_cast<float>(-scale[c] * sum[c] / count);
  }

  T* gx = args.out<T>(0);
  plan.for_each_stretch([&](int64_t, int64_t first, int64_t rows) {
    const int64_t at = first * channels;
    loops.grad_apply(x + at, gy + at, channel, gx + at, rows, channels);
  });
}

}  // namespace

PreparedKernel prepare_batch_moments_cpu(const OpQuery& query) {
  const Plan plan(query, 0);
  return visit_float(query.inputs[0].dtype, [&]<class T>(TypeTag<T>) -> PreparedKernel {
    return {plan.workspace, [plan](const KernelArgs& args) {
              moments(plan, args.in<T>(0), args.workspace, args.out<float>(0),
                      args.out<float>(1));
            }};
  });
}

PreparedKernel prepare_batch_norm_cpu(const OpQuery& query) {
  const Bytes workspace(8 * query.inputs[0].shape.back());
  return visit_float(query.inputs[0].dtype, [&]<class T>(TypeTag<T>) -> PreparedKernel {
    return {workspace, normalise<T>};
  });
}

PreparedKernel prepare_batch_norm_grad_cpu(const OpQuery& query) {
  const Plan plan(query, 4);
  return visit_float(query.inputs[0].dtype, [&]<class T>(TypeTag<T>) -> PreparedKernel {
    return {plan.workspace, [plan](const KernelArgs& args) { run_backward<T>(plan, args); }};
  });
}

}  // namespace tidemark
