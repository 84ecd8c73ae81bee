#include <algorithm>

#include "ops/attention/rotary_kernels.h"
#include "ops/kernels/instruction_sets.h"
#include "ops/kernels/parallel_for.h"
#include "ops/kernels/visit_dtype.h"

namespace tidemark::attention {
namespace {

// All heads of one position.
template <class T>
struct Heads {
  const T* x;
  int64_t x_step;  // to the next head
  const float* cos;
  const float* sin;
  float sign;
  T* y;
  int64_t count, half;
};

template <class T>
TIDEMARK_INLINE void turn_of(const Heads<T>& in) {
  const float* __restrict cos = in.cos;
  const float* __restrict sin = in.sin;
  const int64_t half = in.half;
  const float sign = in.sign;
  for (int64_t h = 0; h < in.count; ++h) {
    // No __restrict: y may be x.
    const T* x = in.x + h * in.x_step;
    T* y = in.y + h * 2 * half;
    TIDEMARK_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < half; ++i) {
      const float a = x[i], b = x[i + half];
      const float c = cos[i], s = sign * sin[i];
      y[i] = a * c - b * s;
      y[i + half] = b * c + a * s;
    }
  }
}

template <class T>
struct Loops {
  void (*turn)(const Heads<T>& in);
};

#define TIDEMARK_DEFINE_LOOPS(name, ...)               \
  struct name {                                        \
    template <class T>                                 \
    __VA_ARGS__ static void turn(const Heads<T>& in) { \
      turn_of(in);                                     \
    }                                                  \
    template <class T>                                 \
    static constexpr Loops<T> table() {                \
      return {turn<T>};                                \
    }                                                  \
  };
TIDEMARK_TYPED_LOOPS(TIDEMARK_DEFINE_LOOPS)

}  // namespace

PreparedKernel prepare_rotary_cpu(const OpQuery& query) {
  const RotaryShape shape(query);
  return visit_float(query.inputs[0].dtype, [=]<class T>(TypeTag<T>) -> PreparedKernel {
    return {
        Bytes(0), [=](const KernelArgs& args) {
          const T* x = args.in<T>(0);
          const float *cos = args.in<float>(1), *sin = args.in<float>(2);
          T* y = args.out<T>(0);
          parallel_tasks(shape.positions(), shape.heads * shape.half * 2, [&](int64_t p) {
            const RotaryShape::Place place = shape.place(p);
            loops<T>().turn({x + place.x, shape.rows.head, cos + place.table, sin + place.table,
                             shape.sign, y + place.y, shape.heads, shape.half});
          });
        }};
  });
}

}  // namespace tidemark::attention
