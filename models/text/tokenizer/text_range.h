// Half-open ranges of bytes of a text.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace tidemark::tokenizers {

struct TextRange {
  size_t begin, end;
  size_t size() const { return end - begin; }
  std::string_view of(std::string_view text) const { return text.substr(begin, size()); }
  bool operator==(const TextRange&) const = default;
};

// In order, without overlaps; ranges may be empty.
using TextRanges = std::vector<TextRange>;

}  // namespace tidemark::tokenizers
