#include "tests/support/ptx/lexer.h"

#include <algorithm>
#include <cctype>

namespace tidemark::ptx {
namespace {

bool in_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%' ||
         c == '.';
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) {
      const char c = source_[at_];
      if (std::isspace(static_cast<unsigned char>(c)) != 0) {
        take(1);
      } else if (starts("//")) {
        take(std::min(source_.find('\n', at_), source_.size()) - at_);
      } else if (starts("/*")) {
        take(std::min(source_.find("*/", at_), source_.size() - 2) + 2 - at_);
      } else if (c == '"') {
        add(source_.find('"', at_ + 1) + 1 - at_);
      } else if (in_word(c) || (c == '-' && in_word(next()))) {
        add(word());
      } else {
        add(1);
      }
    }
    return std::move(tokens_);
  }

 private:
  bool starts(std::string_view text) const { return source_.substr(at_, text.size()) == text; }
  char next() const { return at_ + 1 < source_.size() ? source_[at_ + 1] : '\0'; }

  size_t word() const {
    size_t end = at_ + 1;
    while (end < source_.size()) {
      if (in_word(source_[end])) {
        ++end;
      } else if (source_.substr(end, 2) == "::") {  // L1::no_allocate
        end += 2;
      } else {
        break;
      }
    }
    return end - at_;
  }

  void add(size_t length) {
    tokens_.push_back({source_.substr(at_, length), line_});
    take(length);
  }
  void take(size_t length) {
    const std::string_view text = source_.substr(at_, length);
    line_ += static_cast<int>(std::count(text.begin(), text.end(), '\n'));
    at_ += text.size();
  }

  std::string_view source_;
  size_t at_ = 0;
  int line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) { return Lexer(source).run(); }

}  // namespace tidemark::ptx
