// What the tokenizer has to know of Unicode, as sorted tables; use unicode.h instead.
#pragma once

#include <array>
#include <span>

namespace tidemark {

struct CodeRange {
  char32_t first, last;  // both included
};
struct CodePair {
  char32_t from, to;
};
struct CodeSequence {
  char32_t from;
  std::array<char32_t, 3> to;  // 0 where there is no more
};

extern const std::span<const CodeRange> kPunctuation;    // categories P*
extern const std::span<const CodeRange> kFormat;         // categories Cc and Cf
extern const std::span<const CodeRange> kNonspacing;     // category Mn
extern const std::span<const CodeRange> kWordCharacter;  // Python's \w
extern const std::span<const CodeRange> kSpace;          // Python's isspace()

// Lower case; and lower case, decomposed (NFD), without what is in kNonspacing. Hangul
// syllables and code points that become nothing are left out.
extern const std::span<const CodePair> kLower;
extern const std::span<const CodeSequence> kLowerSequences;
extern const std::span<const CodePair> kFold;
extern const std::span<const CodeSequence> kFoldSequences;

}  // namespace tidemark
