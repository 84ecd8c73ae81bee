// The instructions that the interpreter knows. To add one: declare its function here, define it
// in the file of its group, and add a row to the table in instructions.cc.
#pragma once

#include <optional>
#include <string_view>

#include "tests/support/ptx/kernel.h"

namespace tidemark::ptx {

// integer_ops.cc and float_ops.cc
void execute_add(const Step&);
void execute_sub(const Step&);
void execute_mul(const Step&);
void execute_mad(const Step&);
void execute_div(const Step&);
void execute_rem(const Step&);
void execute_min(const Step&);
void execute_max(const Step&);
void execute_neg(const Step&);
void execute_abs(const Step&);
void execute_fma(const Step&);
void execute_rcp(const Step&);
void execute_sqrt(const Step&);
void execute_rsqrt(const Step&);
void execute_ex2(const Step&);
void execute_lg2(const Step&);
void execute_sin(const Step&);
void execute_cos(const Step&);
void execute_copysign(const Step&);

// bit_ops.cc
void execute_not(const Step&);
void execute_and(const Step&);
void execute_or(const Step&);
void execute_xor(const Step&);
void execute_shl(const Step&);
void execute_shr(const Step&);
void execute_shf(const Step&);
void execute_bfi(const Step&);
void execute_bfe(const Step&);
void execute_prmt(const Step&);
void execute_popc(const Step&);
void execute_clz(const Step&);
void execute_brev(const Step&);

// move_ops.cc
void execute_mov(const Step&);
void execute_selp(const Step&);
void execute_setp(const Step&);
void execute_cvt(const Step&);
void execute_cvta(const Step&);
void execute_nothing(const Step&);
void execute_trap(const Step&);

// memory_ops.cc
void execute_ld(const Step&);
void execute_st(const Step&);
void execute_atom(const Step&);
void execute_red(const Step&);
void execute_membar(const Step&);
void execute_cp_async(const Step&);
void execute_cp_async_commit_group(const Step&);
void execute_cp_async_wait_group(const Step&);
void execute_cp_async_wait_all(const Step&);

// warp_ops.cc
void execute_shfl(const Step&);
void execute_vote(const Step&);
void execute_ldmatrix(const Step&);
void execute_mma(const Step&);

// A row of the table.
struct Opcode {
  const char* name;  // `add`, or `bar.warp` where the next words make it another one
  Execute execute;
  int outputs;            // operands that are written; they come first
  const char* modifiers;  // the words that it may have, besides types and state spaces
  Flow flow = Flow::kPlain;
  Together together = Together::kAlone;
  Undefined undefined = Undefined::kIsWrong;
};

// Null if it is not known.
const Opcode* find_opcode(std::string_view name);
// A row's modifiers.
Modifiers modifiers_of(const Opcode& opcode);
// The modifier of that name, or none.
std::optional<Modifier> find_modifier(std::string_view name);

}  // namespace tidemark::ptx
