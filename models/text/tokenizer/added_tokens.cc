#include "models/text/tokenizer/added_tokens.h"

#include <algorithm>
#include <utility>

#include "models/text/tokenizer/character_classes.h"
#include "models/text/unicode.h"

namespace tidemark::tokenizers {
namespace {

uint64_t edge_key(uint32_t node, char byte) {
  return uint64_t{node} << 8 | static_cast<unsigned char>(byte);
}

// The start of the code point that ends at text[end]. REQUIRES: end > 0.
size_t previous_code_point(std::string_view text, size_t end) {
  size_t begin = end - 1;
  while (begin > 0 && (text[begin] & 0xC0) == 0x80) --begin;
  return begin;
}

char32_t code_at(std::string_view text, size_t at) { return next_code_point(text, at); }

bool is_beside_word(std::string_view text, const TextRange& range) {
  return (range.begin > 0 && is_word(code_at(text, previous_code_point(text, range.begin)))) ||
         (range.end < text.size() && is_word(code_at(text, range.end)));
}

}  // namespace

void AddedTokens::add(AddedToken token) {
  if (token.special) special_.insert(token.id);
  uint32_t node = 0;
  for (const char byte : token.text) {
    const auto [edge, is_new] =
        edges_.emplace(edge_key(node, byte), static_cast<uint32_t>(ends_.size()));
    if (is_new) ends_.push_back(-1);
    node = edge->second;
  }
  if (ends_[node] < 0) ends_[node] = static_cast<int64_t>(tokens_.size());
  tokens_.push_back(std::move(token));
}

Bytes AddedTokens::bytes() const {
  // A vector may have twice its size; nodes, text and rounding in the heap.
  constexpr size_t kPerToken = 2 * sizeof(AddedToken) + 64, kPerEdge = 48 + 2 * sizeof(int64_t);
  size_t characters = 0;
  for (const AddedToken& token : tokens_) characters += token.text.size();
  return Bytes(
      static_cast<int64_t>(tokens_.size() * kPerToken + characters + edges_.size() * kPerEdge +
                           (edges_.bucket_count() + special_.bucket_count()) * sizeof(void*)));
}

const AddedToken* AddedTokens::match(std::string_view text, size_t at) const {
  const AddedToken* longest = nullptr;
  uint32_t node = 0;
  for (; at < text.size(); ++at) {
    const auto edge = edges_.find(edge_key(node, text[at]));
    if (edge == edges_.end()) break;
    node = edge->second;
    if (ends_[node] >= 0) longest = &tokens_[static_cast<size_t>(ends_[node])];
  }
  return longest;
}

std::vector<AddedTokens::Part> AddedTokens::split(std::string_view text, bool find_special,
                                                  std::span<const TextRange> literal) const {
  std::vector<Part> parts;
  size_t reached = 0;  // covered by parts
  for (size_t at = 0; at < text.size();) {
    const AddedToken* const token = match(text, at);
    if (token == nullptr) {
      ++at;
      continue;
    }
    TextRange range{at, at + token->text.size()};
    while (!literal.empty() && literal.front().end <= at) literal = literal.subspan(1);
    if (token->special && !literal.empty() && literal.front().begin < range.end) {
      ++at;  // behind the literal text, one may begin within this one
      continue;
    }
    at = range.end;
    if (token->special && !find_special) continue;
    if (token->single_word && is_beside_word(text, range)) continue;
    if (token->left_strip) {
      while (range.begin > reached) {
        const size_t before = previous_code_point(text, range.begin);
        if (!is_space(code_at(text, before))) break;
        range.begin = before;
      }
    }
    if (token->right_strip) {
      while (range.end < text.size() && is_space(code_at(text, range.end))) {
        next_code_point(text, range.end);
      }
    }
    // The spaces of the token before may cover this one.
    range = {std::max(range.begin, reached), std::max(range.end, reached)};
    if (reached < range.begin) parts.push_back({{reached, range.begin}});
    parts.push_back({range, token->id});
    reached = range.end;
  }
  if (reached < text.size()) parts.push_back({{reached, text.size()}});
  return parts;
}

}  // namespace tidemark::tokenizers
