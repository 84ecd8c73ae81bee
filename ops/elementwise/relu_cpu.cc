#include <algorithm>
#include <cstdint>

#include "ops/elementwise/functors.h"
#include "ops/elementwise/kernels.h"
#include "ops/elementwise/relu.h"
#include "ops/elementwise/sign_words.h"
#include "ops/kernels/instruction_sets.h"
#include "ops/kernels/parallel_for.h"
#include "ops/kernels/visit_dtype.h"

namespace tidemark::elementwise {
namespace {

// `n` elements from the first of a word. No __restrict: y may be x, and dx may be g.
template <class T>
TIDEMARK_INLINE void forward_of(const T* x, T* y, uint32_t* signs, int64_t n) {
  for (int64_t word = 0; word * kSignsPerWord < n; ++word) {
    const int64_t at = word * kSignsPerWord;
    const auto count = static_cast<int>(n - at < kSignsPerWord ? n - at : kSignsPerWord);
    signs[word] = sign_word(x + at, count);
    if (count == kSignsPerWord) {
      TIDEMARK_INDEPENDENT_ITERATIONS
      for (int j = 0; j < kSignsPerWord; ++j) y[at + j] = Relu()(x[at + j]);
    } else {
      for (int j = 0; j < count; ++j) y[at + j] = Relu()(x[at + j]);
    }
  }
}
template <class T>
TIDEMARK_INLINE void backward_of(const T* g, const uint32_t* signs, T* dx, int64_t n) {
  for (int64_t word = 0; word * kSignsPerWord < n; ++word) {
    const int64_t at = word * kSignsPerWord;
    const auto count = static_cast<int>(n - at < kSignsPerWord ? n - at : kSignsPerWord);
    const uint32_t bits = signs[word];
    if (count == kSignsPerWord) {
      TIDEMARK_INDEPENDENT_ITERATIONS
      for (int j = 0; j < kSignsPerWord; ++j) dx[at + j] = bits >> j & 1 ? g[at + j] : T(0);
    } else {
      for (int j = 0; j < count; ++j) dx[at + j] = bits >> j & 1 ? g[at + j] : T(0);
    }
  }
}

template <class T>
struct Loops {
  void (*forward)(const T* x, T* y, uint32_t* signs, int64_t n);
  void (*backward)(const T* g, const uint32_t* signs, T* dx, int64_t n);
};

#define TIDEMARK_DEFINE_LOOPS(name, ...)                                                    \
  struct name {                                                                             \
    template <class T>                                                                      \
    __VA_ARGS__ static void forward(const T* x, T* y, uint32_t* signs, int64_t n) {         \
      forward_of(x, y, signs, n);                                                           \
    }                                                                                       \
    template <class T>                                                                      \
    __VA_ARGS__ static void backward(const T* g, const uint32_t* signs, T* dx, int64_t n) { \
      backward_of(g, signs, dx, n);                                                         \
    }                                                                                       \
    template <class T>                                                                      \
    static constexpr Loops<T> table() {                                                     \
      return {forward<T>, backward<T>};                                                     \
    }                                                                                       \
  };
TIDEMARK_TYPED_LOOPS(TIDEMARK_DEFINE_LOOPS)

// Calls use(begin, end) for ranges of elements, each from the first of a word.
template <class Use>
void for_words(int64_t n, const Use& use) {
  const int64_t words = (n + kSignsPerWord - 1) / kSignsPerWord;
  parallel_chunks(words, kSerialElements / kSignsPerWord, [&](int64_t begin, int64_t end) {
    use(begin * kSignsPerWord, std::min(end * kSignsPerWord, n));
  });
}

}  // namespace

PreparedKernel prepare_relu_cpu(const OpQuery& query) {
  const int64_t n = query.outputs[0].shape.elements();
  return visit_float(query.outputs[0].dtype, [&]<class T>(TypeTag<T>) -> PreparedKernel {
    const auto forward = loops<T>().forward;
    return {Bytes(0), [=](const KernelArgs& args) {
              const T* x = args.in<T>(0);
              T* y = args.out<T>(0);
              auto* signs = args.out<uint32_t>(1);
              for_words(n, [&](int64_t begin, int64_t end) {
                forward(x + begin, y + begin, signs + begin / kSignsPerWord, end - begin);
              });
            }};
  });
}

PreparedKernel prepare_relu_grad_cpu(const OpQuery& query) {
  const int64_t n = query.outputs[0].shape.elements();
  return visit_float(query.outputs[0].dtype, [&]<class T>(TypeTag<T>) -> PreparedKernel {
    const auto backward = loops<T>().backward;
    return {Bytes(0), [=](const KernelArgs& args) {
              const T* g = args.in<T>(0);
              const auto* signs = args.in<uint32_t>(1);
              T* dx = args.out<T>(0);
              for_words(n, [&](int64_t begin, int64_t end) {
                backward(g + begin, signs + begin / kSignsPerWord, dx + begin, end - begin);
              });
            }};
  });
}

}  // namespace tidemark::elementwise
