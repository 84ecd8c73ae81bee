// Text to words, as the BasicTokenizer of BERT does it (Devlin et al. 2018,
// github.com/google-research/bert, tokenization.py).
//
// Controls are dropped, white space separates, punctuation and CJK ideographs are words of
// their own. Uncased: lower case, accents stripped, for every script. Bytes that are not UTF-8
// are dropped, like U+FFFD. As in the original, Hangul syllables come apart into letters when
// uncased.
//
// Not as the original: Greek's final sigma becomes an ordinary one, and marks that are not
// nonspacing keep the order in which they stand. "[MASK]" in a text is not special: it is
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
  size_t at;          // where it starts in Word::text
  size_t begin, end;  // the bytes [begin, end) of the source that it stands for
};

struct Word {
  std::string text;                       // normalized, UTF-8; never empty
  std::vector<WordCharacter> characters;  // one per code point of `text`
};

// Calls `visit` for each word in order; the Word is reused for the next one.
void for_each_word(std::string_view text, bool uncased,
                   const std::function<void(const Word&)>& visit);

// The words alone.
std::vector<std::string> split_words(std::string_view text, bool uncased);

}  // namespace tidemark
