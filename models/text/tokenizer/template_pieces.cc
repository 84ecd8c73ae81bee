#include "models/text/tokenizer/template_pieces.h"

#include <algorithm>
#include <array>

#include "models/text/tokenizer/jinja_form.h"

namespace tidemark::tokenizers {
namespace {

// Conditions that hold only if there are tools, called or to be called.
constexpr std::array<std::string_view, 24> kOfTools{
    "tools",
    "toolsisnotnone",
    "toolsisnotnoneandtools",
    "toolsisnotnoneandnottools_in_user_message",
    "toolsisnotnoneand(message==user_messages[-1])",
    "toolsisdefinedandtools",
    "toolsisdefinedandtoolsisnotnone",
    "toolsand(message==user_messages[-1])",
    "tools_in_user_messageandnottoolsisnone",
    "builtin_tools",
    "builtin_toolsisdefined",
    "custom_tools",
    "custom_toolsisdefined",
    "message.tool_calls",
    "message['tool_calls']",
    "message.tool_callsisdefined",
    "message.tool_callsisdefinedandmessage.tool_callsisnotnone",
    "'tool_calls'inmessage",
    "message['role']=='tool'",
    "message['role']=='tool_calls'",
    "message['role']=='tool_results'",
    "message['role']=='ipython'",
    "message['role']=='assistant'andmessage.tool_calls",
    "message['role']=='assistant'andmessage.tool_callsisdefined"};

// Whether a condition is one of these, or some of them joined by or.
bool needs_tools(std::string_view condition) {
  while (true) {
    const size_t end = condition.find("or");
    if (std::find(kOfTools.begin(), kOfTools.end(), condition.substr(0, end)) ==
        kOfTools.end()) {
      return false;
    }
    if (end == std::string_view::npos) return true;
    condition.remove_prefix(end + 2);
  }
}

constexpr const char* kElse = "{%else%}";

// {{raise_exception('...')}}
bool refuses(const std::string& piece) {
  const std::string begin = std::string("{{raise_exception(") + kJinjaQuote;
  return piece.starts_with(begin) &&
         piece.find(kJinjaQuote, begin.size()) + 4 == piece.size() && piece.ends_with(")}}");
}

// An if or a for that is not closed yet.
struct Block {
  bool is_for = false;
  std::vector<size_t> branches{};  // of an if: where they begin in the pieces
  bool of_tools = false;           // the last of them
  bool took_plain_assistants = false;
};

class Reader {
 public:
  explicit Reader(std::string_view form) : form_(form) {}

  std::vector<std::string> run() {
    while (at_ < form_.size()) {
      const size_t open = std::min(next_expression(), next_statement());
      if (open > at_) {
        pieces_.push_back(take(std::min(open, form_.size())));
      } else if (form_[at_ + 1] == '%') {
        statement(take(end_of_delimited("%}")));
      } else {
        pieces_.push_back(take(end_of_delimited("}}")));
      }
    }
    std::erase(pieces_, std::string());
    return std::move(pieces_);
  }

 private:
  // Each is looked for once.
  size_t next_expression() {
    if (expression_ < at_ || at_ == 0) expression_ = form_.find("{{", at_);
    return expression_;
  }
  size_t next_statement() {
    if (statement_ < at_ || at_ == 0) statement_ = form_.find("{%", at_);
    return statement_;
  }
  std::string take(size_t end) {
    std::string taken(form_.substr(at_, end - at_));
    at_ = end;
    return taken;
  }
  size_t end_of_delimited(std::string_view close) const {
    bool is_quoted = false;
    for (size_t at = at_ + 2; at < form_.size(); ++at) {
      if (form_[at] == kJinjaQuote) is_quoted = !is_quoted;
      if (!is_quoted && form_.substr(at).starts_with(close)) return at + close.size();
    }
    return form_.size();
  }

  void statement(std::string piece) {
    const std::string inner = piece.substr(2, std::max(piece.size(), size_t{4}) - 4);
    const bool in_block = !blocks_.empty();
    const bool in_if = in_block && !blocks_.back().is_for;
    if (inner.starts_with("if")) {
      blocks_.emplace_back();
      begin_branch(inner.substr(2));
    } else if (inner.starts_with("elif") && in_if) {
      end_branch();
      begin_branch(inner.substr(4));
    } else if (inner == "else" && in_if) {
      end_branch();
      begin_branch("");
    } else if (inner == "endif" && in_if) {
      end_branch();
      end_if();
    } else if (inner == "endfor" && in_block && !in_if) {
      const bool is_empty = blocks_.back().branches.front() + 1 == pieces_.size();
      is_empty ? pieces_.pop_back() : pieces_.push_back(piece);
      blocks_.pop_back();
    } else {
      if (inner.starts_with("for")) blocks_.push_back({true, {pieces_.size()}});
      pieces_.push_back(std::move(piece));
    }
  }
  // An else has no condition.
  void begin_branch(const std::string& condition) {
    Block& block = blocks_.back();
    const std::string quoted = in_quotes(condition);
    const bool is_left_over =
        block.took_plain_assistants && quoted == "message['role']=='assistant'";
    block.of_tools = needs_tools(quoted) || is_left_over;
    if (quoted.find("message['role']=='assistant'andnotmessage.tool_calls") !=
        std::string::npos) {
      block.took_plain_assistants = true;
    }
    const std::string keyword = block.branches.empty() ? "{%if" : "{%elif";
    block.branches.push_back(pieces_.size());
    pieces_.push_back(condition.empty() ? kElse : keyword + condition + "%}");
  }
  void end_branch() {
    Block& block = blocks_.back();
    const size_t begin = block.branches.back();
    const bool refused = begin + 1 < pieces_.size() && refuses(pieces_[begin + 1]);
    if (!block.of_tools && !refused) return;
    pieces_.resize(begin);
    block.branches.pop_back();
  }
  void end_if() {
    std::vector<size_t>& branches = blocks_.back().branches;
    while (!branches.empty() && branches.back() + 1 == pieces_.size()) {
      pieces_.pop_back();
      branches.pop_back();
    }
    if (!branches.empty() && pieces_[branches.front()] == kElse) {
      pieces_[branches.front()].clear();  // dropped at the end
    } else if (!branches.empty()) {
      pieces_.emplace_back("{%endif%}");
    }
    blocks_.pop_back();
  }

  std::string_view form_;
  size_t at_ = 0;
  size_t expression_ = 0, statement_ = 0;  // the next ones
  std::vector<Block> blocks_;
  std::vector<std::string> pieces_;
};

}  // namespace

std::string in_quotes(std::string piece) {
  std::replace(piece.begin(), piece.end(), kJinjaQuote, '\'');
  return piece;
}

std::vector<std::string> template_pieces(std::string_view form) { return Reader(form).run(); }

std::optional<std::string> match_piece(std::string_view pattern, std::string_view piece) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) {
    return pattern == piece ? std::optional<std::string>("") : std::nullopt;
  }
  const std::string_view before = pattern.substr(0, star), after = pattern.substr(star + 1);
  if (piece.size() + 1 < pattern.size() || !piece.starts_with(before) ||
      !piece.ends_with(after)) {
    return std::nullopt;
  }
  const std::string_view found = piece.substr(star, piece.size() + 1 - pattern.size());
  const bool in_string = std::count(before.begin(), before.end(), kJinjaQuote) % 2 == 1;
  if (in_string && found.find(kJinjaQuote) != std::string_view::npos) return std::nullopt;
  return std::string(found);
}

}  // namespace tidemark::tokenizers
