#include "models/text/tokenizer/template_pieces.h"

#include <algorithm>
#include <array>

#include "models/text/tokenizer/jinja_form.h"

namespace tidemark::tokenizers {
namespace {

// What holds only if there are tools, called or to be called.
constexpr std::array<std::string_view, 4> kOfTools{"'tool_calls'in", "message['role']=='tool",
                                                   "message['role']=='ipython'",
                                                   "tools_in_user_messageandnottoolsisnone"};
// The same, if they are true or there.
constexpr std::array<std::string_view, 6> kTools{
    "tools",
    "builtin_tools",
    "custom_tools",
    "message.tool_calls",
    "message['tool_calls']",
    "message['role']=='assistant'andmessage.tool_calls"};
constexpr std::array<std::string_view, 3> kAreThere{"isdefined", "isnotnone", "and"};

bool needs_tools(std::string_view condition) {
  const size_t end = condition.find("or");
  const std::string_view first = condition.substr(0, end);
  const auto of_tools = [&](std::string_view start) { return first.starts_with(start); };
  const auto are_there = [&](std::string_view name) {
    if (!first.starts_with(name)) return false;
    const std::string_view rest = first.substr(name.size());
    return rest.empty() ||
           std::any_of(kAreThere.begin(), kAreThere.end(),
                       [&](std::string_view start) { return rest.starts_with(start); });
  };
  return (std::any_of(kOfTools.begin(), kOfTools.end(), of_tools) ||
          std::any_of(kTools.begin(), kTools.end(), are_there)) &&
         (end == std::string_view::npos || needs_tools(condition.substr(end + 2)));
}

// An if, with the branch that the reader is in.
struct Branch {
  bool is_reached;
  bool of_prompt;
  bool has_plain_assistant;  // an earlier branch took assistants that call no tools
};

class Reader {
 public:
  explicit Reader(std::string_view form) : rest_(form) {}

  std::vector<std::string> run() {
    while (!rest_.empty()) {
      const size_t open = std::min(rest_.find("{{"), rest_.find("{%"));
      if (open != 0) {
        add(take(open));
        continue;
      }
      const bool is_block = rest_[1] == '%';
      const size_t close = end_of_delimited(is_block ? "%}" : "}}");
      const std::string piece = take(close);
      is_block ? block(piece) : add(piece);
    }
    return std::move(pieces_);
  }

 private:
  std::string take(size_t count) {
    std::string taken(rest_.substr(0, count));
    rest_.remove_prefix(taken.size());
    return taken;
  }
  size_t end_of_delimited(std::string_view close) const {
    bool is_quoted = false;
    for (size_t at = 2; at < rest_.size(); ++at) {
      if (rest_[at] == kJinjaQuote) is_quoted = !is_quoted;
      if (!is_quoted && rest_.substr(at).starts_with(close)) return at + close.size();
    }
    return rest_.size();
  }
  void add(const std::string& piece) {
    if (piece.starts_with("{{raise_exception(")) return;
    bool of_prompt = false;
    for (const Branch& branch : branches_) {
      if (!branch.is_reached) return;
      of_prompt = of_prompt || branch.of_prompt;
    }
    pieces_.push_back(of_prompt && piece.starts_with("{{") ? std::string(kPromptMark) + piece
                                                           : piece);
  }

  void block(const std::string& piece) {
    const auto starts = [&](std::string_view keyword) {
      return piece.substr(2).starts_with(keyword);
    };
    const auto condition = [&](size_t keyword) {
      return in_quotes(
          piece.substr(2 + keyword, piece.size() - std::min(piece.size(), 4 + keyword)));
    };
    if (starts("if")) {
      branches_.push_back({true, false, false});
      enter(condition(2), piece);
    } else if (starts("elif") && !branches_.empty()) {
      enter(condition(4), piece);
    } else if (starts("else") && !branches_.empty()) {
      branches_.back().is_reached = true;
      branches_.back().of_prompt = false;
    } else if (starts("endif") && !branches_.empty()) {
      branches_.pop_back();
    } else if (!starts("endfor")) {
      add(piece);
    }
  }
  void enter(const std::string& condition, const std::string& piece) {
    Branch& branch = branches_.back();
    const bool is_left_over =
        branch.has_plain_assistant && condition == "message['role']=='assistant'";
    branch.is_reached = !needs_tools(condition) && !is_left_over;
    branch.of_prompt = condition == "add_generation_prompt" ||
                       condition == "loop.lastandadd_generation_prompt";
    if (condition.find("message['role']=='assistant'andnotmessage.tool_calls") !=
        std::string::npos) {
      branch.has_plain_assistant = true;
    }
    add(piece);
  }

  std::string_view rest_;
  std::vector<Branch> branches_;
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
