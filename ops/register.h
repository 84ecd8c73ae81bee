// Looks up operators and registers the CUDA kernels, which a build may lack. Capture finds
// operators by name here; tests of properties that every operator must have iterate over all of
// them. operators.inc lists the operators, one line each.
#pragma once

#include <span>
#include <string_view>

#include "ops/registry/op.h"

namespace tidemark {

// Names are unique.
std::span<const OpDef* const> all_operators();

// Null if no operator has this name.
const OpDef* find_operator(std::string_view name);

// Registers the operators' CUDA kernels. Programs that may run on CUDA call this once, before
// their first operator there. Needs no GPU; does nothing in a build without CUDA or when called
// again.
void register_cuda_kernels();

}  // namespace tidemark
