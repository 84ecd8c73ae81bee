// Squares are summed in float64 over runs that depend on the shape alone; the runs' sums are
// added in order.
#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/kernels/parallel_for.h"
#include "ops/kernels/strided.h"
#include "ops/kernels/visit_dtype.h"
#include "ops/reduce/kernels.h"

namespace tidemark::reduce {
namespace {

constexpr int64_t kRun = 16 << 10;

int64_t runs_of(const StridedLoop& loop) { return (loop.elements + kRun - 1) / kRun; }

double square(float x) { return double{x} * double{x}; }

template <class T>
double squares_of(const T* x, int64_t n) {
  constexpr int64_t kLanes = 16;
  double lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += square(x[i + lane]);
  }
  for (int64_t lane = 0; i < n; ++i, ++lane) lanes[lane] += square(x[i]);
  double total = 0;
  for (double lane : lanes) total += lane;
  return total;
}

template <class T>
double strided_squares(const StridedLoop& loop, const T* x, int64_t begin, int64_t end) {
  double total = 0;
  for (int64_t i = begin; i < end; ++i) total += square(x[loop.offset(0, i)]);
  return total;
}

}  // namespace

PreparedKernel prepare_norm_cpu(const OpQuery& query) {
  std::vector<StridedLoop> loops;
  int64_t all_runs = 0;
  for (const TensorMeta& input : query.inputs) {
    loops.push_back(make_loop(input.shape, {&input}));
    all_runs += runs_of(loops.back());
  }
  return visit_float(query.inputs[0].dtype, [&]<class T>(TypeTag<T>) -> PreparedKernel {
    return {Bytes(all_runs * 8), [all_runs, loops](const KernelArgs& args) {
              double* const partials = reinterpret_cast<double*>(args.workspace);
              double* partial = partials;
              for (size_t i = 0; i < loops.size(); ++i) {
                const StridedLoop& loop = loops[i];
                const T* x = args.in<T>(i);
                parallel_tasks(runs_of(loop), kRun, [&](int64_t run) {
                  const int64_t begin = run * kRun, end = std::min(loop.elements, begin + kRun);
                  partial[run] = loop.flat(1) ? squares_of(x + begin, end - begin)
                                              : strided_squares(loop, x, begin, end);
                });
                partial += runs_of(loop);
              }
              double total = 0;
              for (int64_t run = 0; run < all_runs; ++run) total += partials[run];
              *args.out<float>(0) = static_cast<float>(std::sqrt(total));
            }};
  });
}

void join_norms_cpu(const KernelArgs& args) {
  double total = 0;
  for (size_t i = 0; i < args.inputs.size(); ++i) {
    const double one = *args.in<float>(i);
    total += one * one;
  }
  *args.out<float>(0) = static_cast<float>(std::sqrt(total));
}

}  // namespace tidemark::reduce
