// Inner loops for the CPU, compiled for several instruction sets; the best that this processor
// has, and the user allows, is chosen when the program runs (cpu_isa.h).
//
// The loops are always_inline functions (TIDEMARK_INLINE). A macro DEFINE(name, attributes)
// makes a struct `name` of functions that have those attributes and call the loops, and of
// table(), which gives pointers to them:
//
//   #define DEFINE(name, ...)
//     struct name {
//       __VA_ARGS__ static void f(const float* x, int64_t n) { f_of(x, n); }
//       static constexpr Table table() { return {f}; }
//     };
//   TIDEMARK_FOR_EACH_INSTRUCTION_SET(DEFINE)
//   const Table& loops() {
//     static const Table table = best_instruction_set<Baseline, Avx2, Avx512>();
//     return table;
//   }
//
// (Attributes rather than compiler flags for a file: the linker may then never pick a library's
// inline function compiled for a newer processor.) Lambdas do not inherit the attributes: keep
// them out of the loops. Results may differ in the last bit between instruction sets, as some
// fuse a product and a sum.
#pragma once

#include "ops/kernels/cpu_isa.h"

#define TIDEMARK_INLINE inline __attribute__((always_inline))

#if defined(__x86_64__)
#define TIDEMARK_FOR_EACH_INSTRUCTION_SET(DEFINE)   \
  DEFINE(Baseline, )                                \
  DEFINE(Avx2, __attribute__((target("avx2,fma")))) \
  DEFINE(Avx512, __attribute__((target("avx512f,avx512vl,avx512dq,fma"))))
#else
#define TIDEMARK_FOR_EACH_INSTRUCTION_SET(DEFINE) \
  DEFINE(Baseline, )                              \
  using Avx2 = Baseline;                          \
  using Avx512 = Baseline;
#endif

namespace tidemark {

// use.template operator()<Set>() with the best of the three.
template <class Baseline, class Avx2, class Avx512, class Use>
auto with_best_instruction_set(const Use& use) {
#if defined(__x86_64__)
  const InstructionSet best = best_for_loops(cpu_facts());
  if (best == InstructionSet::kAvx512) return use.template operator()<Avx512>();
  if (best == InstructionSet::kAvx2) return use.template operator()<Avx2>();
#endif
  return use.template operator()<Baseline>();
}

template <class Baseline, class Avx2, class Avx512>
auto best_instruction_set() {
  return with_best_instruction_set<Baseline, Avx2, Avx512>(
      []<class Set>() { return Set::table(); });
}

// The same where tables are by the type of the elements: table<T>().
template <class T, class Baseline, class Avx2, class Avx512>
auto best_instruction_set_for() {
  return with_best_instruction_set<Baseline, Avx2, Avx512>(
      []<class Set>() { return Set::template table<T>(); });
}

}  // namespace tidemark
