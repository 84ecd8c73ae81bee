#include <algorithm>
#include <utility>
#include <vector>

#include "ops/kernels/parallel_for.h"
#include "ops/kernels/visit_dtype.h"
#include "ops/pool/upsample.h"

namespace tidemark {
namespace {

// An axis as a table: the weights of each target's sources.
struct Taps {
  int64_t sources = 0;
  Windows ranges;
  std::vector<std::vector<float>> weights;

  explicit Taps(const UpsampleAxis& axis) : sources(axis.sources()) {
    for (int64_t target = 0; target < axis.targets(); ++target) {
      ranges.push_back(axis.sources_of(target));
      weights.emplace_back();
      for (int64_t source = ranges.back().begin; source < ranges.back().end; ++source) {
        weights.back().push_back(axis.weight(target, source));
      }
    }
  }
  int64_t targets() const { return static_cast<int64_t>(ranges.size()); }
  // use(source, weight), in order.
  template <class Use>
  void for_sources(int64_t target, const Use& use) const {
    const auto i = static_cast<size_t>(target);
    for (size_t k = 0; k < weights[i].size(); ++k) {
      use(ranges[i].begin + static_cast<int64_t>(k), weights[i][k]);
    }
  }
};

// Channels at a time, so that their sums stay in the first-level cache.
constexpr int64_t kTile = 512;
// Terms that a pass over the channels adds: all that an output of trilinear interpolation has.
constexpr size_t kTerms = 8;

// The sum of weighted rows of up to kTile channels.
template <class T>
class WeightedSum {
 public:
  // `sum` has room for the channels.
  WeightedSum(float* sum, int64_t channels) : sum_(sum), channels_(channels) {}

  void add(const T* from, float weight) {
    if (count_ == kTerms) {
      pass<kTerms>(sum_);
      summed_ = true;
      count_ = 0;
    }
    from_[count_] = from;
    weights_[count_++] = weight;
  }
  void write(T* y) const { write(y, std::make_index_sequence<kTerms + 1>()); }

 private:
  template <size_t... n>
  void write(T* y, std::index_sequence<n...> /*counts*/) const {
    (static_cast<void>(count_ == n && (pass<n>(y), true)), ...);
  }
  template <size_t n, class Out>
  void pass(Out* y) const {
    if (summed_) {
      pass<true>(y, std::make_index_sequence<n>());
    } else {
      pass<false>(y, std::make_index_sequence<n>());
    }
  }
  template <bool summed, class Out, size_t... i>
  void pass(Out* y, std::index_sequence<i...> /*terms*/) const {
    [[maybe_unused]] const T* const from[] = {from_[i]..., nullptr};
    [[maybe_unused]] const float weights[] = {weights_[i]..., 0};
    const float* const sum = sum_;
    const int64_t channels = channels_;
    TIDEMARK_INDEPENDENT_ITERATIONS
    for (int64_t c = 0; c < channels; ++c) {
      y[c] = ((summed ? sum[c] : 0) + ... + (weights[i] * from[i][c]));
    }
  }

  float* sum_;
  int64_t channels_;
  bool summed_ = false;  // sum_ has the terms of earlier passes
  size_t count_ = 0;
  const T* from_[kTerms] = {};
  float weights_[kTerms] = {};
};

template <class T>
void resample(const Taps& slices, const Taps& rows, const Taps& columns, int64_t channels,
              const KernelArgs& args) {
  const int64_t depth = slices.targets(), height = rows.targets(), width = columns.targets();
  const int64_t images = args.output_metas[0].shape[0];
  const T* const x = args.in<T>(0);
  T* const y = args.out<T>(0);
  const int64_t each = std::max(width, columns.sources) * channels;
  parallel_tasks(images * depth * height, each, [&](int64_t task) {
    const int64_t n = task / height / depth, d = task / height % depth, h = task % height;
    float sum[kTile];
    for (int64_t w = 0; w < width; ++w) {
      for (int64_t c0 = 0; c0 < channels; c0 += kTile) {
        WeightedSum<T> total(sum, std::min(kTile, channels - c0));
        slices.for_sources(d, [&](int64_t slice, float slice_weight) {
          rows.for_sources(h, [&](int64_t row, float row_weight) {
            const int64_t first =
                ((n * slices.sources + slice) * rows.sources + row) * columns.sources;
            columns.for_sources(w, [&](int64_t column, float weight) {
              total.add(x + (first + column) * channels + c0,
                        slice_weight * row_weight * weight);
            });
          });
        });
        total.write(y + (task * width + w) * channels + c0);
      }
    }
  });
}

PreparedKernel prepare(const OpQuery& query, bool gradient) {
  const UpsampleGrid grid = upsample_grid(query, gradient);
  const Taps slices(grid.slices), rows(grid.rows), columns(grid.columns);
  return visit_float(query.inputs[0].dtype, [&]<class T>(TypeTag<T>) -> PreparedKernel {
    return {Bytes(0), [=, channels = grid.channels](const KernelArgs& args) {
              resample<T>(slices, rows, columns, channels, args);
            }};
  });
}

}  // namespace

PreparedKernel prepare_upsample_cpu(const OpQuery& query) { return prepare(query, false); }
PreparedKernel prepare_upsample_grad_cpu(const OpQuery& query) { return prepare(query, true); }

}  // namespace tidemark
