#include "models/text/word_piece.h"

#include <algorithm>

namespace tidemark {

std::vector<Token> WordPiece::tokenize(std::string_view text) const {
  std::vector<Token> tokens;
  std::string scratch;
  for_each_word(text, options_.uncased,
                [&](const Word& word) { split(word, scratch, tokens); });
  return tokens;
}

// `scratch` holds the rest of the word, with "##" in front except at the start.
void WordPiece::split(const Word& word, std::string& scratch, std::vector<Token>& into) const {
  const std::vector<WordCharacter>& characters = word.characters;
  const size_t already = into.size();
  const auto end_of = [&](size_t count) {  // of the first `count` characters, in word.text
    return count < characters.size() ? characters[count].at : word.text.size();
  };
  size_t begin = characters.size() > options_.longest_word ? characters.size() : 0;
  bool found = begin == 0;
  while (found && begin < characters.size()) {
    scratch.assign(begin > 0 ? kContinuation : "");
    const size_t mark = scratch.size();
    scratch.append(word.text, characters[begin].at);
    found = false;
    for (size_t end = characters.size(); end > begin; --end) {
      const size_t length = mark + end_of(end) - characters[begin].at;
      if (length > vocabulary_.longest_piece()) continue;
      const auto id = vocabulary_.find(std::string_view(scratch).substr(0, length));
      if (!id) continue;
      into.push_back({*id, characters[begin].begin, characters[end - 1].end});
      begin = end;
      found = true;
      break;
    }
  }
  if (found) return;
  into.resize(already);
  into.push_back({vocabulary_.unknown(), characters.front().begin, characters.back().end});
}

std::vector<int32_t> WordPiece::ids(std::string_view text) const {
  std::vector<int32_t> ids;
  std::string scratch;
  std::vector<Token> tokens;  // of one word: a whole text's would take six times its ids
  for_each_word(text, options_.uncased, [&](const Word& word) {
    tokens.clear();
    split(word, scratch, tokens);
    for (const Token& token : tokens) ids.push_back(token.id);
  });
  return ids;
}

std::vector<std::string> WordPiece::pieces(std::string_view text) const {
  std::vector<std::string> pieces;
  for (const Token& token : tokenize(text)) pieces.push_back(vocabulary_.piece(token.id));
  return pieces;
}

std::string WordPiece::decode(std::span<const int32_t> ids) const {
  std::string text;
  for (const int32_t id : ids) {
    const std::string& piece = vocabulary_.piece(id);
    if (piece == kPadPiece || piece == kClassPiece || piece == kSeparatorPiece) continue;
    if (piece.size() > kContinuation.size() && piece.starts_with(kContinuation) &&
        !text.empty()) {
      text.append(piece, kContinuation.size());
      continue;
    }
    if (!text.empty()) text += ' ';
    text += piece;
  }
  return text;
}

}  // namespace tidemark
