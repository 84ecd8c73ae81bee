#include "ops/attention/tile_loops.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cmath>

#include "ops/kernels/instruction_sets.h"

namespace tidemark::attention {
namespace {

// The loops are in an included file instead of always_inline templates: before inlining, the
// compiler splits vectors by the attributes of the function that contains them.
struct Baseline {
  static constexpr int kLanes = 4;
  typedef uint64_t Pairs __attribute__((vector_size(kLanes * 4)));
#define TIDEMARK_TARGET
  static inline Pairs lower_product(Pairs a, Pairs b) {
    return (a & 0xFFFFFFFF) * (b & 0xFFFFFFFF);
  }
#include "ops/attention/tile_loops.inc"
#undef TIDEMARK_TARGET
};
#if defined(__x86_64__)
struct Avx2 {
  static constexpr int kLanes = 8;
  typedef uint64_t Pairs __attribute__((vector_size(kLanes * 4)));
#define TIDEMARK_TARGET __attribute__((target("avx2,fma")))
  TIDEMARK_TARGET static inline Pairs lower_product(Pairs a, Pairs b) {
    return reinterpret_cast<Pairs>(
        _mm256_mul_epu32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
  }
#include "ops/attention/tile_loops.inc"
#undef TIDEMARK_TARGET
};
struct Avx512 {
  static constexpr int kLanes = 16;
  typedef uint64_t Pairs __attribute__((vector_size(kLanes * 4)));
#define TIDEMARK_TARGET __attribute__((target("avx512f,avx512vl,avx512dq,fma")))
  TIDEMARK_TARGET static inline Pairs lower_product(Pairs a, Pairs b) {
    return reinterpret_cast<Pairs>(_mm512_maskz_mul_epu32(0xFF, reinterpret_cast<__m512i>(a),
                                                          reinterpret_cast<__m512i>(b)));
  }
#include "ops/attention/tile_loops.inc"
#undef TIDEMARK_TARGET
};
#else
using Avx2 = Baseline;
using Avx512 = Baseline;
#endif

}  // namespace

const TileLoops& tile_loops() {
  static const TileLoops loops = best_instruction_set<Baseline, Avx2, Avx512>();
  return loops;
}

std::vector<TileLoops> all_tile_loops() {
  std::vector<TileLoops> all{Baseline::table()};
#if defined(__x86_64__)
  if (cpu_facts().avx2) all.push_back(Avx2::table());
  if (cpu_facts().avx512) all.push_back(Avx512::table());
#endif
  return all;
}

}  // namespace tidemark::attention
