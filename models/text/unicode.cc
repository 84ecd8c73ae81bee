#include "models/text/unicode.h"

#include <algorithm>

#include "models/text/unicode_tables.h"

namespace tidemark {
namespace {

bool contains(std::span<const CodeRange> ranges, char32_t code) {
  const auto after = std::upper_bound(
      ranges.begin(), ranges.end(), code,
      [](char32_t value, const CodeRange& range) { return value < range.first; });
  return after != ranges.begin() && code <= std::prev(after)->last;
}

template <class Row>
const Row* find(std::span<const Row> rows, char32_t code) {
  const auto row =
      std::lower_bound(rows.begin(), rows.end(), code,
                       [](const Row& entry, char32_t value) { return entry.from < value; });
  return row != rows.end() && row->from == code ? &*row : nullptr;
}

CodeText map(char32_t code, std::span<const CodePair> pairs,
             std::span<const CodeSequence> sequences) {
  if (const CodePair* pair = find(pairs, code)) return {{pair->to}, 1};
  if (const CodeSequence* row = find(sequences, code)) {
    CodeText text;
    for (const char32_t c : row->to) {
      if (c != 0) text.codes[text.size++] = c;
    }
    return text;
  }
  return {{code}, 1};
}

bool is_ascii_letter_upper(char32_t code) { return code >= 'A' && code <= 'Z'; }

// Unicode standard, section 3.12.
CodeText decompose_hangul(char32_t code) {
  constexpr char32_t kLeading = 0x1100, kVowel = 0x1161, kTrailing = 0x11A7;
  constexpr char32_t kVowels = 21, kTrailings = 28;
  const char32_t index = code - 0xAC00;
  CodeText text{{kLeading + index / (kVowels * kTrailings),
                 kVowel + index % (kVowels * kTrailings) / kTrailings},
                2};
  if (index % kTrailings != 0) text.codes[text.size++] = kTrailing + index % kTrailings;
  return text;
}

}  // namespace

char32_t next_code_point(std::string_view text, size_t& at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  const size_t start = at++;
  if (first < 0x80) return first;
  const size_t more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
  if (first < 0xC2 || first > 0xF4 || text.size() - start <= more) return kReplacement;
  char32_t code = first & (0x3F >> more);
  for (size_t i = 1; i <= more; ++i) {
    if ((byte(start + i) & 0xC0) != 0x80) return kReplacement;
    code = code << 6 | (byte(start + i) & 0x3F);
  }
  constexpr std::array<char32_t, 4> kLeast{0, 0x80, 0x800, 0x10000};
  if (code < kLeast[more] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
    return kReplacement;
  }
  at = start + more + 1;
  return code;
}

void append_utf8(std::string& text, char32_t code) {
  const auto put = [&](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  const auto tail = [&](int shift) { put(0x80 | (code >> shift & 0x3F)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    tail(0);
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    tail(6);
    tail(0);
  } else {
    put(0xF0 | code >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
}

bool is_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    // A replacement character that is really there has three bytes.
    if (next_code_point(text, at) == kReplacement && at - start == 1) return false;
  }
  return true;
}

size_t count_code_points(std::string_view text) {
  size_t count = 0;
  for (size_t at = 0; at < text.size(); ++count) next_code_point(text, at);
  return count;
}

bool is_white_space(char32_t code) {
  if (code < 0x80) return code == ' ' || code == '\t' || code == '\n' || code == '\r';
  return is_python_space(code) && !is_control(code);
}

bool is_control(char32_t code) {
  if (code < 0x80) return (code < ' ' || code == 0x7F) && !is_white_space(code);
  return contains(kFormat, code);
}

bool is_punctuation(char32_t code) {
  if (code < 0x80) {
    return (code > ' ' && code < '0') || (code > '9' && code < 'A') ||
           (code > 'Z' && code < 'a') || (code > 'z' && code < 0x7F);
  }
  return contains(kPunctuation, code);
}

bool is_cjk(char32_t code) {
  static constexpr CodeRange kIdeographs[] = {
      {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},   {0x20000, 0x2A6DF},
      {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F}, {0x2B820, 0x2CEAF}, {0x2F800, 0x2FA1F}};
  return code >= 0x3400 && contains(kIdeographs, code);
}

bool is_word_character(char32_t code) { return contains(kWordCharacter, code); }

bool is_python_space(char32_t code) { return contains(kSpace, code); }

CodeText lower_case(char32_t code) {
  if (code < 0x80) return {{is_ascii_letter_upper(code) ? code + 32 : code}, 1};
  return map(code, kLower, kLowerSequences);
}

CodeText fold(char32_t code) {
  if (code < 0x80) return {{is_ascii_letter_upper(code) ? code + 32 : code}, 1};
  if (code >= 0xAC00 && code < 0xD7A4) return decompose_hangul(code);
  if (contains(kNonspacing, code)) return {};
  return map(code, kFold, kFoldSequences);
}

}  // namespace tidemark
