// Every operator there is, one line each in operators.inc: for capture, which finds operators
// by name, and for the tests that hold for all of them. And the kernels that a build may lack.
#pragma once

#include <span>
#include <string_view>

#include "ops/registry/op.h"

namespace tidemark {

// Names are unique.
std::span<const OpDef* const> all_operators();

// Null if there is none of that name.
const OpDef* find_operator(std::string_view name);

// Gives the operators their CUDA kernels. Programs that may run on CUDA call it once, before
// their first operator there; needs no GPU. Does nothing in a build without CUDA, and the
// second time.
void register_cuda_kernels();

}  // namespace tidemark
