#include "models/text/tokenizer/oniguruma.h"

#include <algorithm>
#include <utility>

namespace tidemark::tokenizers {
namespace {

// Oniguruma's \s and \w, without the brackets of a class. Some fractions of Latin-1 are words.
constexpr std::string_view kSpaces = R"(\t-\r\x{85}\p{Z})";
constexpr std::string_view kWords =
    R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{b2}\x{b3}\x{b9}\x{bc}-\x{be})";

// From left to right.
class Translation {
 public:
  explicit Translation(std::string_view pattern) : rest_(pattern) {}

  OnigurumaAsPcre2 run() {
    while (!rest_.empty() && refused_.empty()) step();
    return {std::move(text_), std::move(refused_)};
  }

 private:
  void copy(size_t count) {
    text_ += rest_.substr(0, count);
    rest_.remove_prefix(std::min(count, rest_.size()));
  }
  void replace(size_t count, std::string_view by) {
    text_ += by;
    rest_.remove_prefix(count);
  }

  void step() {
    if (rest_.front() == '\\') return escape();
    if (in_class_) return step_in_class();
    if (changes_lines()) {
      refused_ = "'(?m'";  // lines in PCRE2, any character for a dot in Oniguruma
      return;
    }
    if (rest_.front() == '[') {
      in_class_ = true;
      copy(rest_.starts_with("[^") ? 2 : 1);
      if (rest_.starts_with(']')) copy(1);  // a literal there
    } else if (rest_.starts_with("{,")) {
      replace(1, "{0");
    } else if (rest_.starts_with("}+")) {
      refused_ = "'{n,m}+'";  // possessive in PCRE2, a repetition in Oniguruma
    } else {
      copy(1);
    }
  }

  // Whether an option group begins with the letter m among its options.
  bool changes_lines() const {
    if (!rest_.starts_with("(?")) return false;
    const size_t end = rest_.find_first_not_of("imsx-", 2);
    return end != std::string_view::npos && (rest_[end] == ':' || rest_[end] == ')') &&
           rest_.substr(2, end - 2).find('m') != std::string_view::npos;
  }

  void step_in_class() {
    if (rest_.starts_with("&&")) {
      refused_ = "an intersection of classes";
    } else if (rest_.starts_with("[:")) {
      copy(rest_.find(":]") == std::string_view::npos ? 2 : rest_.find(":]") + 2);
    } else if (rest_.front() == '[') {
      refused_ = "a class within a class";
    } else {
      in_class_ = rest_.front() != ']';
      copy(1);
    }
  }

  void escape() {
    const char kind = rest_.size() > 1 ? rest_[1] : '\0';
    const auto set = [&](std::string_view of) {
      return in_class_ ? std::string(of) : '[' + std::string(of) + ']';
    };
    switch (kind) {
      case 's': return replace(2, set(kSpaces));
      case 'w': return replace(2, set(kWords));
      case 'S':
        if (in_class_) return copy(2);
        return replace(2, "[^" + std::string(kSpaces) + ']');
      case 'W':
        if (in_class_) break;
        return replace(2, "[^" + std::string(kWords) + ']');
      case 'u':
        if (rest_.size() < 6) break;
        return replace(6, "\\x{" + std::string(rest_.substr(2, 4)) + '}');
      case 'v': return replace(2, "\\x0b");
      case 'b':
        if (in_class_) return copy(2);
        break;
      case 'B':  // what a word is differs
      case 'K':  // a match could end before it begins
      case 'h':
      case 'H': break;
      default: {
        // \p{L}+ repeats as in PCRE2.
        const size_t end = rest_.find('}');
        const bool braced =
            rest_.size() > 2 && rest_[2] == '{' && end != std::string_view::npos;
        return copy(braced ? end + 1 : 2);
      }
    }
    refused_ = "'\\" + std::string(1, kind) + "'" + (in_class_ ? " in a class" : "");
  }

  std::string_view rest_;
  std::string text_, refused_;
  bool in_class_ = false;
};

}  // namespace

OnigurumaAsPcre2 oniguruma_as_pcre2(std::string_view pattern) {
  return Translation(pattern).run();
}

}  // namespace tidemark::tokenizers
