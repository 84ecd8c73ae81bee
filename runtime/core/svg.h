// Shared by pictures: escaping for SVG, and the colours of categories.
//
// Threads: functions without state.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "runtime/core/category.h"

namespace tidemark {

// Indexed by Category.
inline constexpr std::array<const char*, kCategoryCount> kCategoryColours{
    "#4e79a7", "#f28e2b", "#76b7b2", "#b07aa1", "#59a14f", "#edc948", "#9c9c9c"};

// Escapes text for use as text or as an attribute's value. Control characters, which XML does
// not allow, become spaces.
std::string svg_escaped(std::string_view text);

}  // namespace tidemark
