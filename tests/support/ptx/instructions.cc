#include "tests/support/ptx/instructions.h"

#include <sstream>
#include <string>
#include <unordered_map>

namespace tidemark::ptx {
namespace {

constexpr Flow kPlain = Flow::kPlain;
constexpr Together kAlone = Together::kAlone, kNamed = Together::kNamed,
                   kAligned = Together::kAligned;

// Every modifier that is covered is named here. Any other is an error, never ignored.
const Opcode kOpcodes[] = {
    {"add", execute_add, 1, "rn"},
    {"sub", execute_sub, 1, "rn"},
    {"mul", execute_mul, 1, "rn lo hi wide"},
    {"mad", execute_mad, 1, "lo hi wide"},
    {"div", execute_div, 1, "rn full approx"},
    {"rem", execute_rem, 1, ""},
    {"min", execute_min, 1, ""},
    {"max", execute_max, 1, ""},
    {"neg", execute_neg, 1, ""},
    {"abs", execute_abs, 1, ""},
    {"fma", execute_fma, 1, "rn rm"},
    {"rcp", execute_rcp, 1, "rn approx ftz"},
    {"sqrt", execute_sqrt, 1, "rn approx"},
    {"rsqrt", execute_rsqrt, 1, "approx ftz"},
    {"ex2", execute_ex2, 1, "approx ftz"},
    {"lg2", execute_lg2, 1, "approx ftz"},
    {"sin", execute_sin, 1, "approx"},
    {"cos", execute_cos, 1, "approx"},
    {"copysign", execute_copysign, 1, ""},

    {"not", execute_not, 1, ""},
    {"and", execute_and, 1, ""},
    {"or", execute_or, 1, ""},
    {"xor", execute_xor, 1, ""},
    {"shl", execute_shl, 1, ""},
    {"shr", execute_shr, 1, ""},
    {"shf", execute_shf, 1, "l r clamp wrap"},
    {"bfi", execute_bfi, 1, ""},
    {"bfe", execute_bfe, 1, ""},
    {"prmt", execute_prmt, 1, ""},
    {"popc", execute_popc, 1, ""},
    {"clz", execute_clz, 1, ""},
    {"brev", execute_brev, 1, ""},

    {"mov", execute_mov, 1, "", kPlain, kAlone, Undefined::kIsCopied},
    {"selp", execute_selp, 1, "", kPlain, kAlone, Undefined::kIsCopied},
    {"setp", execute_setp, 1,
     "eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan and or xor"},
    {"cvt", execute_cvt, 1, "rn rz rm rp rni rzi rmi rpi rna sat"},
    {"cvta", execute_cvta, 1, "to"},
    {"trap", execute_trap, 0, ""},
    {"membar", execute_membar, 0, "gl cta sys"},
    // Launches end in order, so nothing is left for these to do.
    {"griddepcontrol.wait", execute_nothing, 0, ""},
    {"griddepcontrol.launch_dependents", execute_nothing, 0, ""},

    {"ld", execute_ld, 1, "v2 v4 nc volatile"},
    {"st", execute_st, 0, "v2 v4 volatile"},
    {"atom", execute_atom, 1, "relaxed gpu cta sys add min max and or xor exch cas"},
    {"red", execute_red, 0, "relaxed gpu cta sys add min max and or xor"},
    {"cp.async", execute_cp_async, 0, "ca cg"},
    {"cp.async.commit_group", execute_cp_async_commit_group, 0, ""},
    {"cp.async.wait_group", execute_cp_async_wait_group, 0, ""},
    {"cp.async.wait_all", execute_cp_async_wait_all, 0, ""},

    {"shfl", execute_shfl, 1, "sync up down bfly idx", kPlain, kNamed, Undefined::kIsShuffled},
    {"vote", execute_vote, 1, "sync any all ballot", kPlain, kNamed},
    {"ldmatrix", execute_ldmatrix, 1, "sync aligned m8n8 x1 x2 x4 trans", kPlain, kAligned},
    {"mma", execute_mma, 1, "sync aligned m16n8k8 m16n8k16 row col", kPlain, kAligned},

    {"bra", execute_nothing, 0, "uni", Flow::kBranch},
    {"ret", execute_nothing, 0, "uni", Flow::kExit},
    {"exit", execute_nothing, 0, "", Flow::kExit},
    {"bar", execute_nothing, 0, "sync", Flow::kBlockBarrier, kAligned},
    {"barrier", execute_nothing, 0, "sync aligned", Flow::kBlockBarrier, kAligned},
    {"bar.warp", execute_nothing, 0, "sync", Flow::kWarpBarrier, kNamed},
};

}  // namespace

const Opcode* find_opcode(std::string_view name) {
  static const auto& rows = *[] {
    auto* map = new std::unordered_map<std::string_view, const Opcode*>;
    for (const Opcode& opcode : kOpcodes) map->emplace(opcode.name, &opcode);
    return map;
  }();
  const auto found = rows.find(name);
  return found == rows.end() ? nullptr : found->second;
}

std::optional<Modifier> find_modifier(std::string_view name) {
  static const auto& names = *new std::unordered_map<std::string_view, Modifier>{
#define X(word) {#word, Modifier::k_##word},
      TIDEMARK_PTX_MODIFIERS(X)
#undef X
  };
  const auto found = names.find(name);
  if (found == names.end()) return std::nullopt;
  return found->second;
}

Modifiers modifiers_of(const Opcode& opcode) {
  Modifiers modifiers;
  std::istringstream words(opcode.modifiers);
  for (std::string word; words >> word;) {
    modifiers.set(static_cast<size_t>(find_modifier(word).value()));
  }
  return modifiers;
}

}  // namespace tidemark::ptx
