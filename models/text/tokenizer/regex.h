// A regular expression of a tokenizer.json, matched by PCRE2.
//
// Hugging Face matches with Oniguruma; oniguruma.h says what is rewritten for PCRE2 and what is
// refused. PCRE2's tables decide the version of Unicode.
//
// The steps of a search are bounded by a multiple of the text's size, so a hostile expression
// ends in an error.
//
// Immutable once made; any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "models/text/tokenizer/text_range.h"

struct pcre2_real_code_8;  // PCRE2's pcre2_code

namespace tidemark::tokenizers {

class Regex {
 public:
  // `file` and `place` are used in messages. Throws DataError if PCRE2 does not accept the
  // pattern, or it is refused.
  Regex(std::string_view pattern, std::string file, std::string place);

  // All matches, from left to right. A match is empty only where the previous one does not end.
  // Throws DataError if the search takes too many steps. REQUIRES: `text` is UTF-8.
  TextRanges find_all(std::string_view text) const;

 private:
  std::shared_ptr<const pcre2_real_code_8> code_;
  std::string file_, place_;
};

}  // namespace tidemark::tokenizers
