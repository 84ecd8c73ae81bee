#include "tests/support/ptx/declarations.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "tests/support/ptx/violation.h"

namespace tidemark::ptx {

std::optional<uint64_t> parse_number(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  int base = 10;
  if (text.size() > 2 && text[0] == '0' &&
      std::string_view("xXfFdD").find(text[1]) != std::string_view::npos) {
    base = 16;
    text.remove_prefix(2);
  }
  if (base == 10 && text.ends_with('U')) text.remove_suffix(1);
  uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return negative ? 0 - value : value;
}

std::optional<Type> parse_type(std::string_view word) {
  if (word == "pred") return Type{Kind::kPredicate, 1};
  if (word == "tf32") return Type{Kind::kTf32, 32};
  if (word == "bf16") return Type{Kind::kBFloat16, 16};
  if (word == "bf16x2") return Type{Kind::kBFloat16, 32};
  static const std::map<char, Kind> kinds{
      {'u', Kind::kUnsigned}, {'s', Kind::kSigned}, {'b', Kind::kBits}, {'f', Kind::kFloat}};
  const auto kind = word.empty() ? kinds.end() : kinds.find(word[0]);
  const auto bits = kind == kinds.end() ? std::nullopt : parse_number(word.substr(1));
  if (!bits || (*bits != 8 && *bits != 16 && *bits != 32 && *bits != 64)) return std::nullopt;
  return Type{kind->second, static_cast<int>(*bits)};
}

Variable parse_variable(std::span<const Token>& words, int64_t& total) {
  Variable variable;
  bool pointer = false, aligned = false;
  const auto take = [&] {
    if (words.empty()) throw NotCovered("a variable's declaration ends too early");
    const std::string_view text = words[0].text;
    words = words.subspan(1);
    return text;
  };
  const auto number = [](std::string_view text) {
    return static_cast<int64_t>(parse_number(text).value_or(0));
  };
  std::string_view word = take();
  for (; word.starts_with('.'); word = take()) {
    if (word == ".align") {
      const int64_t align = number(take());
      if (!pointer) variable.align = align;
      aligned = aligned || !pointer;
    } else if (word == ".ptr") {
      pointer = true;  // what follows is about what it points to
    } else if (const auto type = parse_type(word.substr(1))) {
      variable.bytes = variable.element = type->bytes();
    }
  }
  if (!aligned) variable.align = variable.bytes;
  variable.name = word;
  while (!words.empty() && words[0].text == "[") {
    take();
    if (words[0].text == "]") variable.bytes = 0;  // a launch gives its size
    for (word = take(); word != "]"; word = take()) variable.bytes *= number(word);
  }
  variable.align = std::max<int64_t>(variable.align, 1);
  variable.offset = (total + variable.align - 1) / variable.align * variable.align;
  total = variable.offset + variable.bytes;
  return variable;
}

}  // namespace tidemark::ptx
