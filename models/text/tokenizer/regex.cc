#include "models/text/tokenizer/regex.h"

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "models/text/tokenizer/oniguruma.h"
#include "models/text/unicode.h"
#include "runtime/core/errors.h"

namespace tidemark::tokenizers {
namespace {

constexpr size_t kMaxPattern = 16384;    // in bytes; real ones have a few hundred
constexpr uint32_t kHeapKib = 32 << 10;  // for backtracking
// A search looks for a match at this many bytes, then at the next ones: PCRE2 limits the steps
// at each byte alone.
constexpr size_t kWindow = 64;
constexpr uint32_t kFreeSteps = 4096;  // at a byte
// A longer search pays from a budget of this many steps, and more for a longer text. A run of
// white space takes two or three steps a byte.
constexpr uint64_t kBudget = uint64_t{1} << 22, kBudgetPerByte = 64;

template <auto kFree>
struct Free {
  template <class T>
  void operator()(T* pointer) const {
    kFree(pointer);
  }
};
template <class T, auto kFree>
using Owned = std::unique_ptr<T, Free<kFree>>;

template <class T>
T* not_null(T* pointer) {
  if (pointer == nullptr) throw std::bad_alloc();
  return pointer;
}

std::string describe(int error) {
  std::array<PCRE2_UCHAR, 256> message{};
  pcre2_get_error_message(error, message.data(), message.size());
  return reinterpret_cast<const char*>(message.data());
}

// One search through a text.
class Search {
 public:
  Search(const pcre2_code* code, std::string_view text)
      : code_(code),
        text_(text),
        budget_(kBudget + kBudgetPerByte * text.size()),
        context_(not_null(pcre2_match_context_create(nullptr))),
        match_(not_null(pcre2_match_data_create(1, nullptr))) {
    pcre2_set_heap_limit(context_.get(), kHeapKib);
  }

  // The first match from `from` on: PCRE2's result, which is negative where there is none.
  int next(size_t from) {
    for (;;) {
      size_t last = std::min(from + kWindow, text_.size());
      while (last < text_.size() && (text_[last] & 0xC0) == 0x80) ++last;
      const int result = within(from, last);
      if (result != PCRE2_ERROR_NOMATCH || last == text_.size()) return result;
      from = last;
    }
  }
  TextRange match() const {
    const PCRE2_SIZE* const ends = pcre2_get_ovector_pointer(match_.get());
    return {ends[0], ends[1]};
  }

 private:
  int within(size_t from, size_t last) {
    pcre2_set_offset_limit(context_.get(), last);
    for (uint32_t steps = kFreeSteps;; steps *= 4) {
      pcre2_set_match_limit(context_.get(), steps);
      const int result =
          pcre2_match(code_, reinterpret_cast<PCRE2_SPTR>(text_.data()), text_.size(), from,
                      PCRE2_NO_UTF_CHECK, match_.get(), context_.get());
      if (result != PCRE2_ERROR_MATCHLIMIT || steps > budget_) return result;
      budget_ -= steps;
    }
  }

  const pcre2_code* code_;
  std::string_view text_;
  uint64_t budget_;
  Owned<pcre2_match_context, pcre2_match_context_free> context_;
  Owned<pcre2_match_data, pcre2_match_data_free> match_;
};

}  // namespace

Regex::Regex(std::string_view pattern, std::string file, std::string place)
    : file_(std::move(file)), place_(std::move(place)) {
  const auto fail = [&](const std::string& what) {
    throw DataError(file_, place_ + ": " + what);
  };
  if (pattern.size() > kMaxPattern) fail("a regular expression of more than 16 KiB");
  const OnigurumaAsPcre2 translated = oniguruma_as_pcre2(pattern);
  if (!translated.refused.empty()) {
    fail("regular expressions with " + translated.refused + " are not supported");
  }

  const Owned<pcre2_compile_context, pcre2_compile_context_free> context(
      not_null(pcre2_compile_context_create(nullptr)));
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  const std::string& text = translated.text;
  int error = 0;
  PCRE2_SIZE at = 0;
  pcre2_code* const code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                                         PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE |
                                             PCRE2_USE_OFFSET_LIMIT | PCRE2_NEVER_BACKSLASH_C,
                                         &error, &at, context.get());
  if (code == nullptr) fail("not a regular expression: " + describe(error));
  code_ = std::shared_ptr<pcre2_code>(code, pcre2_code_free);
}

TextRanges Regex::find_all(std::string_view text) const {
  TextRanges found;
  Search search(code_.get(), text);
  for (size_t from = 0; from <= text.size();) {
    const int result = search.next(from);
    if (result == PCRE2_ERROR_NOMATCH) break;
    if (result < 0) {
      throw DataError(file_, place_ + ": the regular expression gives up on a text of " +
                                 std::to_string(text.size()) + " bytes: " + describe(result));
    }
    const TextRange match = search.match();
    if (match.begin < from || match.end < match.begin) {
      throw DataError(file_, place_ + ": the regular expression moves a match's ends");
    }
    from = match.end;
    if (match.size() > 0 || found.empty() || found.back().end != match.end) {
      found.push_back(match);
    }
    if (match.size() > 0) continue;
    // An empty match would be found there again.
    if (from == text.size()) break;
    next_code_point(text, from);
  }
  return found;
}

}  // namespace tidemark::tokenizers
