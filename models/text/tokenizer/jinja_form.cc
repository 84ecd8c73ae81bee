#include "models/text/tokenizer/jinja_form.h"

#include <algorithm>

namespace tidemark::tokenizers {
namespace {

constexpr std::string_view kBlank = " \t\r\n\f\v";

class Former {
 public:
  explicit Former(std::string_view jinja) : rest_(jinja) {}

  std::string run() {
    while (!rest_.empty()) {
      const bool opens = rest_.starts_with("{{") || rest_.starts_with("{%");
      if (rest_.starts_with("{#")) {
        comment();
      } else if (opens) {
        delimited();
      } else {
        if (rest_.front() == '\n') line_ = said_ = text_.size() + 1;
        text_ += rest_.front();
        rest_.remove_prefix(1);
      }
    }
    for (const auto& [dotted, indexed] :
         {std::pair{"message.role", "message['role']"},
          std::pair{"message.content", "message['content']"},
          std::pair{"messages[0].role", "messages[0]['role']"},
          std::pair{"messages[0].content", "messages[0]['content']"}}) {
      replace(dotted, indexed);
    }
    return text_;
  }

 private:
  void skip_blank() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(kBlank), rest_.size()));
  }
  // Drops what lies between the last line break, or the last expression, and the end.
  void drop_before(std::string_view blank) {
    const size_t kept = text_.find_last_not_of(blank);
    text_.resize(kept == std::string::npos ? 0 : kept + 1);
    line_ = std::min(line_, text_.size());
    said_ = std::min(said_, text_.size());
  }

  void drop_indentation() {
    said_ = text_.find_first_not_of(" \t", said_);
    if (said_ != std::string::npos) return;
    text_.resize(line_);
    said_ = line_;
  }

  void comment() {
    const size_t end = rest_.find("#}");
    rest_.starts_with("{#-") ? drop_before(kBlank) : drop_indentation();
    const bool trims = end != std::string_view::npos && end > 0 && rest_[end - 1] == '-';
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 2);
    if (trims) return skip_blank();
    end_line();
  }
  // Drops a line break behind a statement or a comment.
  void end_line() {
    if (!rest_.starts_with('\n')) return;
    rest_.remove_prefix(1);
    line_ = said_ = text_.size();
  }

  // {{ an expression }} or {% a statement %}
  void delimited() {
    const bool is_block = rest_[1] == '%';
    const std::string_view close = is_block ? "%}" : "}}";
    if (rest_.size() > 2 && rest_[2] == '-') {
      drop_before(kBlank);
    } else if (is_block) {
      drop_indentation();
    }
    text_ += rest_.substr(0, 2);
    rest_.remove_prefix(rest_.size() > 2 && rest_[2] == '-' ? 3 : 2);
    while (!rest_.empty()) {
      const bool trims = rest_.front() == '-' && rest_.substr(1).starts_with(close);
      if (trims || rest_.starts_with(close)) {
        text_ += close;
        rest_.remove_prefix(trims ? 3 : 2);
        if (trims) return skip_blank();
        if (is_block) end_line();
        return;
      }
      if (rest_.front() == '\'' || rest_.front() == '"') {
        quoted();
        continue;
      }
      if (kBlank.find(rest_.front()) == std::string_view::npos) text_ += rest_.front();
      rest_.remove_prefix(1);
    }
  }

  void quoted() {
    const char quote = rest_.front();
    rest_.remove_prefix(1);
    // 'a'+'b' is one string.
    if (literal_end_ != 0 && literal_end_ + 1 == text_.size() && text_.back() == '+') {
      text_.resize(literal_end_ - 1);
    } else {
      text_ += kJinjaQuote;
    }
    while (!rest_.empty() && rest_.front() != quote) {
      if (rest_.front() == '\\' && rest_.size() > 1) {
        rest_.remove_prefix(1);
        text_ += rest_.front() == 'n' ? '\n' : rest_.front() == 't' ? '\t' : rest_.front();
      } else {
        text_ += rest_.front();
      }
      rest_.remove_prefix(1);
    }
    text_ += kJinjaQuote;
    literal_end_ = text_.size();
    if (!rest_.empty()) rest_.remove_prefix(1);
  }

  void replace(std::string_view what, std::string by) {
    std::replace(by.begin(), by.end(), '\'', kJinjaQuote);
    std::string replaced;
    size_t begin = 0;
    for (size_t at = 0; (at = text_.find(what, begin)) != std::string::npos;) {
      replaced.append(text_, begin, at - begin).append(by);
      begin = at + what.size();
    }
    text_ = replaced.append(text_, begin);
  }

  std::string_view rest_;
  std::string text_;
  size_t line_ = 0;         // where the current line begins in text_
  size_t said_ = 0;         // from line_ to here are only blanks
  size_t literal_end_ = 0;  // behind the last string in text_
};

}  // namespace

std::string jinja_form(std::string_view jinja) { return Former(jinja).run(); }

bool has_part(std::string_view form, std::string part) {
  std::replace(part.begin(), part.end(), '\'', kJinjaQuote);
  return form.find(part) != std::string_view::npos;
}

}  // namespace tidemark::tokenizers
