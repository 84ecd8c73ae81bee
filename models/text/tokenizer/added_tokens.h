// Tokens that are found as they are written in a text, whatever the model would make of them:
// special ones such as "<|im_end|>", and others that were added to a vocabulary.
//
// Immutable once filled; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "models/text/tokenizer/text_range.h"
#include "runtime/core/units.h"

namespace tidemark::tokenizers {

struct AddedToken {
  int32_t id = 0;
  std::string text;          // not empty
  bool special = false;      // decoding may omit it
  bool left_strip = false;   // takes the white space on its left along
  bool right_strip = false;  // and on its right
  bool single_word = false;  // not where a word character is next to it
  bool normalized = false;   // looked for in the normalized text
};

class AddedTokens {
 public:
  void add(AddedToken token);

  struct Part {
    TextRange range;
    int32_t id = -1;  // -1 for text between tokens
  };
  // Finds the tokens, the leftmost first and of those at one place the longest. The parts cover
  // the text; none is empty, except tokens that the spaces stripped by the one before cover.
  // Without `find_special`, special tokens are ordinary text, and so are those that have a byte
  // in one of the `literal` ranges (ascending, disjoint).
  std::vector<Part> split(std::string_view text, bool find_special,
                          std::span<const TextRange> literal = {}) const;

  bool has_special() const { return !special_.empty(); }
  bool is_special(int32_t id) const { return special_.contains(id); }
  // An upper bound on host memory.
  Bytes bytes() const;

 private:
  // The longest token at text[at]; nullptr if there is none.
  const AddedToken* match(std::string_view text, size_t at) const;

  std::vector<AddedToken> tokens_;
  std::unordered_set<int32_t> special_;
  // A trie. Its root is node 0; the edge of a node and a byte leads to another node.
  std::unordered_map<uint64_t, uint32_t> edges_;
  std::vector<int64_t> ends_{-1};  // by node: index of the token that ends there, or -1
};

}  // namespace tidemark::tokenizers
