// The purpose of a block of memory. Every allocation states one, so that a peak can be
// explained.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tidemark {

enum class Category : uint8_t {
  kParameter,
  kGradient,
  kOptimizerState,
  kBuffer,  // running statistics and the like
  kActivation,
  kData,
  kWorkspace,
};
inline constexpr size_t kCategoryCount = 7;
inline constexpr std::array<std::string_view, kCategoryCount> kCategoryNames{
    "parameters",  "gradients", "optimizer state", "buffers",
    "activations", "data",      "workspace"};

constexpr std::string_view to_string(Category category) {
  return kCategoryNames[static_cast<size_t>(category)];
}

}  // namespace tidemark
