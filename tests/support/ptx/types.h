// Types, state spaces and modifiers as PTX spells them.
#pragma once

#include <bitset>
#include <cstdint>

namespace tidemark::ptx {

// A bit for each lane of a warp.
using LaneMask = uint32_t;
inline constexpr int kLanes = 32;
inline constexpr LaneMask kAllLanes = 0xFFFFFFFF;

enum class Kind : uint8_t { kBits, kUnsigned, kSigned, kFloat, kPredicate, kTf32, kBFloat16 };

// The suffix of an instruction: .u32, .f64, .pred. A pair of bfloat16 is kBFloat16 of 32 bits.
struct Type {
  Kind kind = Kind::kBits;
  int bits = 32;
  int bytes() const { return bits / 8; }
};

enum class Space : uint8_t { kGeneric, kGlobal, kShared, kLocal, kParam, kConst };

// All other words that may follow an instruction's name. Their meaning depends on the
// instruction: `hi` is the upper half of a product, and "unsigned greater" in a comparison.
// The first eighteen are comparisons.
// clang-format off
#define TIDEMARK_PTX_MODIFIERS(X)                                                            \
  X(eq) X(ne) X(lt) X(le) X(gt) X(ge) X(lo) X(ls) X(hi) X(hs) X(equ) X(neu) X(ltu) X(leu)    \
  X(gtu) X(geu) X(num) X(nan) X(and) X(or) X(xor) X(add) X(min) X(max) X(exch) X(cas)        \
  X(wide) X(rn) X(rz) X(rm) X(rp) X(rni) X(rzi) X(rmi) X(rpi) X(rna) X(sat) X(ftz)           \
  X(approx) X(full) X(up) X(down) X(bfly) X(idx) X(l) X(r) X(clamp) X(wrap) X(v2) X(v4)      \
  X(to) X(sync) X(uni) X(aligned) X(trans) X(x1) X(x2) X(x4) X(m8n8) X(m16n8k8)              \
  X(m16n8k16) X(row) X(col) X(nc) X(volatile) X(relaxed) X(gpu) X(cta) X(sys) X(gl) X(any)   \
  X(all) X(ballot) X(notanumber) X(finite) X(infinite) X(ca) X(cg)
// clang-format on

enum class Modifier : uint8_t {
#define X(name) k_##name,
  TIDEMARK_PTX_MODIFIERS(X)
#undef X
};
inline constexpr int kComparisons = 18;
using Modifiers = std::bitset<128>;

}  // namespace tidemark::ptx
