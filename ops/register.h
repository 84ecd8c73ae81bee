// Every operator there is, one line each in register.cc: for capture, which finds operators by
// name, and for the tests that hold for all of them.
#pragma once

#include <span>
#include <string_view>

#include "ops/registry/op.h"

namespace tidemark {

// Names are unique.
std::span<const OpDef* const> all_operators();

// Null if there is none of that name.
const OpDef* find_operator(std::string_view name);

}  // namespace tidemark
