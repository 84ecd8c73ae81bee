#include "models/text/basic_tokenizer.h"

#include "models/text/unicode.h"

namespace tidemark {

void for_each_word(std::string_view text, bool uncased,
                   const std::function<void(const Word&)>& visit) {
  Word word;
  const auto flush = [&] {
    if (word.characters.empty()) return;
    visit(word);
    word.text.clear();
    word.characters.clear();
  };
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const char32_t code = next_code_point(text, at);
    if (code == 0 || code == kReplacement || is_control(code)) continue;
    if (is_white_space(code)) {
      flush();
      continue;
    }
    const CodeText normalized = uncased ? fold(code) : CodeText{{code}, 1};
    const bool ideograph = is_cjk(code);
    for (const char32_t c : normalized.view()) {
      const bool alone = ideograph || is_punctuation(c);
      if (alone) flush();
      word.characters.push_back({word.text.size(), begin, at});
      append_utf8(word.text, c);
      if (alone) flush();
    }
  }
  flush();
}

std::vector<std::string> split_words(std::string_view text, bool uncased) {
  std::vector<std::string> words;
  for_each_word(text, uncased, [&](const Word& word) { words.push_back(word.text); });
  return words;
}

}  // namespace tidemark
