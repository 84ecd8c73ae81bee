// Compiles inner loops for several CPU instruction sets. The program picks, at run time, the
// best set that the processor has and the user allows (cpu_isa.h).
//
// The loops are always_inline functions (TIDEMARK_INLINE). A macro DEFINE(name, attributes)
// defines a struct `name` whose functions have those attributes and call the loops; its table()
// returns pointers to those functions:
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
// Where the loops depend on the element type, table<T>() returns a Loops<T>, and
// TIDEMARK_TYPED_LOOPS(DEFINE) stands for all of that: it defines `const Loops<T>& loops<T>()`.
//
// (Function attributes are used instead of per-file compiler flags, so that the linker can
// never pick a library's inline function that was compiled for a newer processor.) Lambdas do
// not inherit the attributes: keep them out of the loops. Results may differ in the last bit
// between instruction sets, because some fuse a product and a sum.
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

#define TIDEMARK_TYPED_LOOPS(DEFINE)                                                    \
  TIDEMARK_FOR_EACH_INSTRUCTION_SET(DEFINE)                                             \
  template <class T>                                                                    \
  const Loops<T>& loops() {                                                             \
    static const Loops<T> best = best_instruction_set_for<T, Baseline, Avx2, Avx512>(); \
    return best;                                                                        \
  }

namespace tidemark {

// Calls use.template operator()<Set>() with the best of the three sets.
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

// The same for tables that depend on the element type: table<T>().
template <class T, class Baseline, class Avx2, class Avx512>
auto best_instruction_set_for() {
  return with_best_instruction_set<Baseline, Avx2, Avx512>(
      []<class Set>() { return Set::template table<T>(); });
}

}  // namespace tidemark
