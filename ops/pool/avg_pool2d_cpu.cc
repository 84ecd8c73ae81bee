#include <algorithm>

#include "ops/kernels/parallel_for.h"
#include "ops/kernels/visit_dtype.h"
#include "ops/pool/avg_pool2d.h"

namespace tidemark {
namespace {

// Windows of each axis, as the outputs see them. `cells`: what a sum is divided by; 0: the
// number of cells inside the image.
struct Pooling {
  Windows rows;
  Windows columns;
  int64_t cells = 0;

  Pooling(const AvgPool2dAttrs& attrs, const Shape& x, const Shape& y) {
    if (attrs.adaptive) {
      rows = adaptive_windows(x[1], y[1]);
      columns = adaptive_windows(x[2], y[2]);
    } else {
      const Pool2dAttrs& pool = attrs.pool;
      rows = sliding_windows(x[1], y[1], pool.window[0], pool.stride[0], pool.padding[0]);
      columns = sliding_windows(x[2], y[2], pool.window[1], pool.stride[1], pool.padding[1]);
      if (attrs.count_include_pad) cells = pool.window[0] * pool.window[1];
    }
  }
  float share(int64_t p, int64_t q) const {
    const int64_t there =
        rows[static_cast<size_t>(p)].size() * columns[static_cast<size_t>(q)].size();
    return 1.0f / static_cast<float>(cells > 0 ? cells : there);
  }
};

// Channels at a time, so that their sums stay in the first-level cache.
constexpr int64_t kTile = 512;

template <class T>
void add_row(const T* __restrict from, float share, float* __restrict to, int64_t channels) {
  for (int64_t c = 0; c < channels; ++c) to[c] += from[c] * share;
}

// y = factor * sum, for up to kTile channels; add(sum) adds the terms.
template <class T, class Add>
void sum_tile(T* __restrict y, int64_t channels, float factor, const Add& add) {
  float sum[kTile];
  std::fill_n(sum, channels, 0.0F);
  add(sum);
  for (int64_t c = 0; c < channels; ++c) y[c] = sum[c] * factor;
}

template <class T>
void forward(const Pooling& pooling, const KernelArgs& args) {
  const Shape& x_shape = args.input_metas[0].shape;
  const Shape& y_shape = args.output_metas[0].shape;
  const int64_t channels = x_shape[3];
  const int64_t outputs = y_shape[1] * y_shape[2];
  const int64_t each = x_shape[1] * x_shape[2] * channels / outputs + 1;
  const T* x = args.in<T>(0);
  T* y = args.out<T>(0);
  parallel_tasks(x_shape[0] * outputs, each, [&](int64_t task) {
    const int64_t n = task / outputs;
    const int64_t p = task % outputs / y_shape[2], q = task % y_shape[2];
    const Range& rows = pooling.rows[static_cast<size_t>(p)];
    const Range& columns = pooling.columns[static_cast<size_t>(q)];
    for (int64_t c0 = 0; c0 < channels; c0 += kTile) {
      const int64_t count = std::min(kTile, channels - c0);
      sum_tile(y + task * channels + c0, count, pooling.share(p, q), [&](float* sum) {
        for (int64_t h = rows.begin; h < rows.end; ++h) {
          for (int64_t w = columns.begin; w < columns.end; ++w) {
            add_row(x + ((n * x_shape[1] + h) * x_shape[2] + w) * channels + c0, 1, sum, count);
          }
        }
      });
    }
  });
}

template <class T>
void backward(const Pooling& pooling, const Windows& rows, const Windows& columns,
              const KernelArgs& args) {
  const Shape& y_shape = args.input_metas[0].shape;
  const Shape& x_shape = args.output_metas[0].shape;
  const int64_t height = x_shape[1], width = x_shape[2], channels = x_shape[3];
  const T* gy = args.in<T>(0);
  T* gx = args.out<T>(0);
  parallel_tasks(x_shape[0] * height, width * channels, [&](int64_t task) {
    const int64_t n = task / height, h = task % height;
    const Range& out_rows = rows[static_cast<size_t>(h)];
    for (int64_t w = 0; w < width; ++w) {
      const Range& out_columns = columns[static_cast<size_t>(w)];
      for (int64_t c0 = 0; c0 < channels; c0 += kTile) {
        const int64_t count = std::min(kTile, channels - c0);
        sum_tile(gx + (task * width + w) * channels + c0, count, 1, [&](float* sum) {
          for (int64_t p = out_rows.begin; p < out_rows.end; ++p) {
            for (int64_t q = out_columns.begin; q < out_columns.end; ++q) {
              add_row(gy + ((n * y_shape[1] + p) * y_shape[2] + q) * channels + c0,
                      pooling.share(p, q), sum, count);
            }
          }
        });
      }
    }
  });
}

}  // namespace

PreparedKernel prepare_avg_pool2d_cpu(const OpQuery& query) {
  const Pooling pooling(query.attr<AvgPool2dAttrs>(), query.inputs[0].shape,
                        query.outputs[0].shape);
  return visit_float(query.inputs[0].dtype, [&]<class T>(TypeTag<T>) -> PreparedKernel {
    return {Bytes(0), [pooling](const KernelArgs& args) { forward<T>(pooling, args); }};
  });
}

PreparedKernel prepare_avg_pool2d_grad_cpu(const OpQuery& query) {
  const Shape& x = query.outputs[0].shape;
  const Pooling pooling(query.attr<AvgPool2dAttrs>(), x, query.inputs[0].shape);
  const Windows rows = seen_by(pooling.rows, x[1]);
  const Windows columns = seen_by(pooling.columns, x[2]);
  return visit_float(query.inputs[0].dtype, [&]<class T>(TypeTag<T>) -> PreparedKernel {
    return {Bytes(0), [pooling, rows, columns](const KernelArgs& args) {
              backward<T>(pooling, rows, columns, args);
            }};
  });
}

}  // namespace tidemark
