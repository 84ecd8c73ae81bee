#include "tests/support/ptx/suffixes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/ptx/declarations.h"
#include "tests/support/ptx/violation.h"

namespace tidemark::ptx {
namespace {

std::vector<std::string_view> split(std::string_view word) {
  std::vector<std::string_view> parts;
  while (!word.empty()) {
    const size_t dot = std::min(word.find('.'), word.size());
    parts.push_back(word.substr(0, dot));
    word.remove_prefix(std::min(dot + 1, word.size()));
  }
  return parts;
}

std::optional<Space> find_space(std::string_view word) {
  static const std::map<std::string_view, Space> names{{"global", Space::kGlobal},
                                                       {"shared", Space::kShared},
                                                       {"local", Space::kLocal},
                                                       {"param", Space::kParam},
                                                       {"const", Space::kConst}};
  const auto found = names.find(word);
  if (found == names.end()) return std::nullopt;
  return found->second;
}

// Hints to the caches, which say nothing about values. `cache_hint` takes an operand more,
// which could be taken for another one.
bool is_hint(std::string_view word) {
  return word.starts_with("L1::") || (word.starts_with("L2::") && word != "L2::cache_hint");
}

// The longest name of an opcode that the first words make, and how many they are.
std::pair<const Opcode*, size_t> find_longest(std::span<const std::string_view> words) {
  constexpr size_t kLongest = 3;
  for (size_t count = std::min(words.size(), kLongest); count > 0; --count) {
    std::string name(words[0]);
    for (const std::string_view word : words.subspan(1, count - 1)) {
      name += "." + std::string(word);
    }
    if (const Opcode* opcode = find_opcode(name)) return {opcode, count};
  }
  return {nullptr, 0};
}

}  // namespace

const Opcode& decode_suffixes(std::string_view word, const std::string& place,
                              Instruction& instruction) {
  const std::vector<std::string_view> parts = split(word);
  const auto [opcode, named] = find_longest(parts);
  const auto fail = [&](const std::string& what) {
    throw NotCovered(place + ": " + what + " that is not covered: " + std::string(word));
  };
  if (!opcode) fail("an instruction");
  const Modifiers allowed = modifiers_of(*opcode);
  bool typed = false;
  for (size_t i = named; i < parts.size(); ++i) {
    const auto modifier = find_modifier(parts[i]);
    if (const auto type = parse_type(parts[i])) {
      instruction.other_type = typed ? instruction.type : *type;
      instruction.type = *type;
      typed = true;
    } else if (modifier && allowed[static_cast<size_t>(*modifier)]) {
      instruction.modifiers.set(static_cast<size_t>(*modifier));
    } else if (const auto space = find_space(parts[i])) {
      instruction.space = *space;
    } else if (!is_hint(parts[i])) {
      fail("a modifier");
    }
  }
  return *opcode;
}

}  // namespace tidemark::ptx
