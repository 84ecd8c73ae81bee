// Other implementations of a captured step's backward operators, as MONeT selects them, as far
// as they give the same bits:
//
//   operator                   reads            in place of it
//   relu6_grad                 y                x
//   max_pool2d_grad            index (1 byte)   x
//
// ReLU reads signs anyway, also behind batch normalisation. Left out: convolution algorithms
// and batch norm's gradient from its output, which round differently; pooling's indices, which
// the engine saves anyway.
//
// The engine has no kernels for these, so they are for planning alone: the result is a Problem,
// which has no way back to a schedule. All of these operators are bound by memory; a variant
// takes the time of the operator it replaces, in proportion to the bytes read and written.
//
// Source: Shah et al., 2021, appendix D ("output-activated", "intermediate-activated").
//
// Threads: functions without state.
#pragma once

#include "runtime/planner/remat/problem_from_step.h"

namespace tidemark::planner::remat {

struct SameBitVariants {
  Problem problem{};
  int offered = 0;  // variants added, those that also run in place counted once
};

// REQUIRES: `step` is problem_from_step(trace, ...).
SameBitVariants add_same_bit_variants(const StepTrace& trace, const StepProblem& step);

}  // namespace tidemark::planner::remat
