#include <algorithm>
#include <limits>

#include "ops/kernels/parallel_for.h"
#include "ops/kernels/visit_dtype.h"
#include "ops/pool/max_pool2d.h"

namespace tidemark {
namespace {

// Channels at a time, so that the maxima found so far stay in registers and first-level cache.
constexpr int64_t kTile = 64;

template <class Index, class T>
void max_pool(const Pool2dAttrs& attrs, const Windows& rows, const Windows& columns,
              const KernelArgs& args) {
  const Shape& x_shape = args.input_metas[0].shape;
  const Shape& y_shape = args.output_metas[0].shape;
  const int64_t height = x_shape[1], width = x_shape[2], channels = x_shape[3];
  const int64_t out_rows = y_shape[1], out_columns = y_shape[2];
  const T* x = args.in<T>(0);
  T* y = args.out<T>(0);
  Index* index = args.out<Index>(1);
  const auto pool_one = [&](int64_t n, int64_t p, int64_t q, int64_t c0, int64_t count) {
    float best[kTile];
    int32_t cell[kTile];
    for (int64_t c = 0; c < count; ++c) {
      best[c] = -std::numeric_limits<float>::infinity();
      cell[c] = -1;
    }
    const Range& in_rows = rows[static_cast<size_t>(p)];
    const Range& in_columns = columns[static_cast<size_t>(q)];
    const int64_t top = p * attrs.stride[0] - attrs.padding[0];
    const int64_t left = q * attrs.stride[1] - attrs.padding[1];
    for (int64_t h = in_rows.begin; h < in_rows.end; ++h) {
      for (int64_t w = in_columns.begin; w < in_columns.end; ++w) {
        const T* from = x + ((n * height + h) * width + w) * channels + c0;
        const int32_t here = static_cast<int32_t>((h - top) * attrs.window[1] + (w - left));
        for (int64_t c = 0; c < count; ++c) {
          const float value = from[c];
          const bool better = (value > best[c]) | (value != value) | (cell[c] < 0);
          cell[c] = better ? here : cell[c];
          best[c] = better ? value : best[c];
        }
      }
    }
    const int64_t to = ((n * out_rows + p) * out_columns + q) * channels + c0;
    for (int64_t c = 0; c < count; ++c) y[to + c] = best[c];
    for (int64_t c = 0; c < count; ++c) index[to + c] = static_cast<Index>(cell[c]);
  };
  const int64_t cells = attrs.window[0] * attrs.window[1];
  parallel_tasks(x_shape[0] * out_rows, out_columns * channels * cells, [&](int64_t task) {
    for (int64_t q = 0; q < out_columns; ++q) {
      for (int64_t c0 = 0; c0 < channels; c0 += kTile) {
        pool_one(task / out_rows, task % out_rows, q, c0, std::min(kTile, channels - c0));
      }
    }
  });
}

// Each input gathers from the windows that see it, so no two threads write to one place.
template <class Index, class T>
void max_pool_grad(const Pool2dAttrs& attrs, const Windows& rows, const Windows& columns,
                   const KernelArgs& args) {
  const Shape& y_shape = args.input_metas[0].shape;
  const Shape& x_shape = args.output_metas[0].shape;
  const int64_t height = x_shape[1], width = x_shape[2], channels = x_shape[3];
  const T* gy = args.in<T>(0);
  const Index* index = args.in<Index>(1);
  T* gx = args.out<T>(0);
  parallel_tasks(x_shape[0] * height, 4 * width * channels, [&](int64_t task) {
    const int64_t n = task / height, h = task % height;
    const Range& out_rows = rows[static_cast<size_t>(h)];
    for (int64_t w = 0; w < width; ++w) {
      const Range& out_columns = columns[static_cast<size_t>(w)];
      for (int64_t c0 = 0; c0 < channels; c0 += kTile) {
        const int64_t count = std::min(kTile, channels - c0);
        float sum[kTile];
        std::fill_n(sum, count, 0.0F);
        for (int64_t p = out_rows.begin; p < out_rows.end; ++p) {
          for (int64_t q = out_columns.begin; q < out_columns.end; ++q) {
            const int64_t from = ((n * y_shape[1] + p) * y_shape[2] + q) * channels + c0;
            const int64_t row = h - (p * attrs.stride[0] - attrs.padding[0]);
            const int64_t column = w - (q * attrs.stride[1] - attrs.padding[1]);
            const auto here = static_cast<Index>(row * attrs.window[1] + column);
            const T* __restrict g = gy + from;
            const Index* __restrict cell = index + from;
            for (int64_t c = 0; c < count; ++c) sum[c] += cell[c] == here ? float{g[c]} : 0.0F;
          }
        }
        T* to = gx + (task * width + w) * channels + c0;
        for (int64_t c = 0; c < count; ++c) to[c] = sum[c];
      }
    }
  });
}

// visit(TypeTag<Index>(), TypeTag<T>())
template <class Visitor>
PreparedKernel visit_types(DType index, DType dtype, const Visitor& visit) {
  return visit_float(dtype, [&]<class T>(TypeTag<T> type) {
    return index == DType::kUInt8 ? visit(TypeTag<uint8_t>(), type)
                                  : visit(TypeTag<int32_t>(), type);
  });
}

}  // namespace

PreparedKernel prepare_max_pool2d_cpu(const OpQuery& query) {
  const auto attrs = query.attr<Pool2dAttrs>();
  const Shape& x = query.inputs[0].shape;
  const Shape& y = query.outputs[0].shape;
  const auto rows =
      sliding_windows(x[1], y[1], attrs.window[0], attrs.stride[0], attrs.padding[0]);
  const auto columns =
      sliding_windows(x[2], y[2], attrs.window[1], attrs.stride[1], attrs.padding[1]);
  return visit_types(query.outputs[1].dtype, query.inputs[0].dtype,
                     [&]<class Index, class T>(TypeTag<Index>, TypeTag<T>) -> PreparedKernel {
                       return {Bytes(0), [attrs, rows, columns](const KernelArgs& args) {
                                 max_pool<Index, T>(attrs, rows, columns, args);
                               }};
                     });
}

PreparedKernel prepare_max_pool2d_grad_cpu(const OpQuery& query) {
  const auto attrs = query.attr<Pool2dGradAttrs>().pool;
  const Shape& x = query.outputs[0].shape;
  const Shape& y = query.inputs[0].shape;
  const auto rows = seen_by(
      sliding_windows(x[1], y[1], attrs.window[0], attrs.stride[0], attrs.padding[0]), x[1]);
  const auto columns = seen_by(
      sliding_windows(x[2], y[2], attrs.window[1], attrs.stride[1], attrs.padding[1]), x[2]);
  return visit_types(query.inputs[1].dtype, query.inputs[0].dtype,
                     [&]<class Index, class T>(TypeTag<Index>, TypeTag<T>) -> PreparedKernel {
                       return {Bytes(0), [attrs, rows, columns](const KernelArgs& args) {
                                 max_pool_grad<Index, T>(attrs, rows, columns, args);
                               }};
                     });
}

}  // namespace tidemark
