#include <algorithm>

#include "ops/kernels/instruction_sets.h"
#include "ops/kernels/parallel_for.h"
#include "ops/kernels/strided.h"
#include "ops/kernels/visit_dtype.h"
#include "ops/random/kernels.h"
#include "ops/random/numbers.h"
#include "ops/random/words_cpu.h"

namespace tidemark::random {
namespace {

uint64_t offset_of(const KernelArgs& args) { return static_cast<uint64_t>(args.scalars[0]); }

// Drawing costs about as much as moving ten elements.
constexpr int64_t kGrain = kSerialElements / 10;

// What dropout does to the element with random number `bits`.
struct Drop {
  uint32_t threshold;  // numbers from this one on are kept
  float factor;

  TIDEMARK_INLINE float operator()(uint32_t bits, float x) const {
    return bits >= threshold ? x * factor : 0;
  }
};

// Elements [begin, end) of gapless x and y, which may be the same; element i has number `start`
// + i.
template <class T>
TIDEMARK_INLINE void dropout_of(uint64_t seed, uint64_t start, Drop drop, const T* x, T* y,
                                int64_t begin, int64_t end) {
  uint32_t words[kWords];
  while (begin < end) {
    const uint64_t number = start + static_cast<uint64_t>(begin);
    const int64_t skip = static_cast<int64_t>(number % 4);
    random_words(seed, number / 4, words);
    const int64_t count = std::min(end - begin, kWords - skip);
    TIDEMARK_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) y[begin + i] = drop(words[skip + i], x[begin + i]);
    begin += count;
  }
}

template <class T>
using DropoutLoop = void (*)(uint64_t seed, uint64_t start, Drop drop, const T* x, T* y,
                             int64_t begin, int64_t end);

#define TIDEMARK_DEFINE_LOOPS(name, ...)                                                  \
  struct name {                                                                           \
    template <class T>                                                                    \
    __VA_ARGS__ static void dropout(uint64_t seed, uint64_t start, Drop drop, const T* x, \
                                    T* y, int64_t begin, int64_t end) {                   \
      dropout_of(seed, start, drop, x, y, begin, end);                                    \
    }                                                                                     \
    template <class T>                                                                    \
    static constexpr DropoutLoop<T> table() {                                             \
      return dropout<T>;                                                                  \
    }                                                                                     \
  };
TIDEMARK_FOR_EACH_INSTRUCTION_SET(TIDEMARK_DEFINE_LOOPS)

template <class T>
DropoutLoop<T> dropout_loop() {
  static const DropoutLoop<T> best = best_instruction_set_for<T, Baseline, Avx2, Avx512>();
  return best;
}

// draw(seed, start, n, a, b, y) fills y[0, n) from a distribution with parameters a and b.
template <class Draw>
PreparedKernel prepare_draw(const OpQuery& query, Draw draw) {
  const int64_t n = query.outputs[0].shape.elements();
  const uint64_t seed = static_cast<uint64_t>(query.attr<RandomAttrs>().seed);
  return {Bytes(0), [=](const KernelArgs& args) {
            draw(seed, offset_of(args), n, static_cast<float>(args.scalars[1]),
                 static_cast<float>(args.scalars[2]), args.out<float>(0));
          }};
}

}  // namespace

PreparedKernel prepare_uniform_cpu(const OpQuery& query) {
  return prepare_draw(
      query, [](uint64_t seed, uint64_t start, int64_t n, float low, float high, float* y) {
        parallel_chunks(n, kGrain, [&](int64_t begin, int64_t end) {
          for_random_bits(seed, start, begin, end, [&](int64_t i, uint32_t bits) {
            const float value = low + (high - low) * uniform_float(bits);
            y[i] = value < high ? value : low;  // rounding may reach the excluded end
          });
        });
      });
}

PreparedKernel prepare_normal_cpu(const OpQuery& query) {
  return prepare_draw(query, [](uint64_t seed, uint64_t start, int64_t n, float mean,
                                float deviation, float* y) {
    parallel_chunks((n + 1) / 2, kGrain, [&](int64_t begin, int64_t end) {
      for_random_bits(seed, start, 2 * begin, 2 * end, NormalPairs{n, mean, deviation, y});
    });
  });
}

PreparedKernel prepare_dropout_cpu(const OpQuery& query) {
  const StridedLoop loop = make_loop(query.outputs[0].shape, {&query.inputs[0]});
  const auto& attrs = query.attr<DropoutAttrs>();
  const uint64_t seed = static_cast<uint64_t>(attrs.seed);
  const Drop drop{static_cast<uint32_t>(attrs.p * 0x1p32),
                  static_cast<float>(1 / (1 - attrs.p))};
  return visit_float(query.inputs[0].dtype, [=]<class T>(TypeTag<T>) -> PreparedKernel {
    const auto flat_loop = dropout_loop<T>();
    return {Bytes(0), [=](const KernelArgs& args) {
              const T* x = args.in<T>(0);
              T* y = args.out<T>(0);
              const uint64_t start = offset_of(args);
              parallel_chunks(loop.elements, kGrain, [&](int64_t begin, int64_t end) {
                if (loop.flat(1)) return flat_loop(seed, start, drop, x, y, begin, end);
                for_random_bits(seed, start, begin, end, [&](int64_t i, uint32_t bits) {
                  y[i] = drop(bits, x[loop.offset(0, i)]);
                });
              });
            }};
  });
}

}  // namespace tidemark::random
