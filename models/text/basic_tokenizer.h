// Splits text into words like BERT's BasicTokenizer (Devlin et al. 2018,
// github.com/google-research/bert, tokenization.py).
//
// Control characters are dropped, white space separates words, and each punctuation mark or CJK
// ideograph is a word. Uncased: text becomes lower case and loses its accents, in every script.
// Bytes that are not UTF-8 are dropped, like U+FFFD. As in the original, uncased Hangul
// syllables are decomposed into letters.
//
// Differences from the original: Greek's final sigma becomes an ordinary sigma, and marks other
// than nonspacing ones keep their order. "[MASK]" in a text is not special: it becomes
// punctuation and a word.
//
// Pure functions; any thread.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark {

struct WordCharacter {
  size_t at;          // offset in Word::text
  size_t begin, end;  // the bytes [begin, end) of the source that it came from
};

struct Word {
  std::string text;                       // normalized, UTF-8; never empty
  std::vector<WordCharacter> characters;  // one per code point of `text`
};

// Calls `visit` for each word in order; the Word object is reused for the next word.
void for_each_word(std::string_view text, bool uncased,
                   const std::function<void(const Word&)>& visit);

// The words alone.
std::vector<std::string> split_words(std::string_view text, bool uncased);

}  // namespace tidemark
