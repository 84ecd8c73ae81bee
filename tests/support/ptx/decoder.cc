#include "tests/support/ptx/decoder.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "tests/support/ptx/instructions.h"
#include "tests/support/ptx/violation.h"

namespace tidemark::ptx {
namespace {

using Words = std::span<const Token>;

std::optional<Special> find_special(std::string_view name) {
  static const std::map<std::string_view, Special> names{
      {"%tid.x", Special::kThreadX},         {"%tid.y", Special::kThreadY},
      {"%tid.z", Special::kThreadZ},         {"%ntid.x", Special::kBlockSizeX},
      {"%ntid.y", Special::kBlockSizeY},     {"%ntid.z", Special::kBlockSizeZ},
      {"%ctaid.x", Special::kBlockX},        {"%ctaid.y", Special::kBlockY},
      {"%ctaid.z", Special::kBlockZ},        {"%nctaid.x", Special::kGridX},
      {"%nctaid.y", Special::kGridY},        {"%nctaid.z", Special::kGridZ},
      {"%laneid", Special::kLane},           {"%warpid", Special::kWarp},
      {"%lanemask_lt", Special::kLanesBelow}};
  const auto found = names.find(name);
  if (found == names.end()) return std::nullopt;
  return found->second;
}

// 12, -4, 0x7F, and floats by their bits: 0f3F800000, 0d3FF0000000000000.
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

class Decoder {
 public:
  Decoder(Kernel& kernel, Symbols symbols) : kernel_(kernel), symbols_(std::move(symbols)) {}

  void run(Words words) {
    while (!words.empty()) {
      if (words[0].text == "{" || words[0].text == "}" || words[0].text == ";") {
        words = words.subspan(1);
      } else if (words[0].text.starts_with('.')) {
        directive(words);
      } else if (words.size() > 1 && words[1].text == ":") {
        labels_.emplace(words[0].text, static_cast<int>(kernel_.code.size()));
        words = words.subspan(2);
      } else {
        const auto end = std::find_if(words.begin(), words.end(),
                                      [](const Token& t) { return t.text == ";"; });
        const auto length = static_cast<size_t>(end - words.begin());
        statement(words.first(length));
        words = words.subspan(std::min(length + 1, words.size()));
      }
    }
    for (const auto& [instruction, label] : branches_) {
      const auto found = labels_.find(label);
      if (found == labels_.end()) fail(kernel_.code[instruction].line, "no such label", label);
      kernel_.code[instruction].target = found->second;
    }
  }

 private:
  struct Group {
    std::vector<int> registers;
    std::string_view label;  // of a branch
  };

  [[noreturn]] void fail(int line, const std::string& what, std::string_view text) const {
    throw NotCovered(kernel_.file + ":" + std::to_string(line) + ": " + what + ": " +
                     std::string(text));
  }

  void directive(Words& words) {
    const std::string_view name = words[0].text;
    const int line = words[0].line;
    if (name == ".loc" || name == ".file") {
      while (!words.empty() && words[0].line == line) words = words.subspan(1);
      return;
    }
    const auto end =
        std::find_if(words.begin(), words.end(), [](const Token& t) { return t.text == ";"; });
    Words rest(words.begin() + 1, end);
    if (name == ".reg") {
      declare_registers(rest);
    } else if (name == ".shared" || name == ".local") {
      int64_t& total = name == ".shared" ? kernel_.shared_bytes : kernel_.local_bytes;
      const Variable v = parse_variable(rest, total);
      symbols_[v.name] = {static_cast<uint64_t>(v.offset), v.bytes};
    } else if (name != ".pragma") {
      fail(line, "a directive that is not covered", name);
    }
    words = Words(end, words.end());
  }

  // .b32 %r<37>  or  .b16 a, b
  void declare_registers(Words words) {
    for (size_t i = 1; i < words.size(); ++i) {
      const std::string name(words[i].text);
      if (i + 1 < words.size() && words[i + 1].text == "<") {
        const auto count = parse_number(words[i + 2].text).value();
        for (uint64_t n = 0; n < count; ++n) {
          registers_[name + std::to_string(n)] = kernel_.registers++;
        }
        i += 3;
      } else if (name != ",") {
        registers_.emplace(name, kernel_.registers++);
      }
    }
  }

  int constant(uint64_t value) {
    const auto [found, added] = constants_.emplace(value, kernel_.registers);
    if (added) kernel_.constants.emplace_back(kernel_.registers++, value);
    return found->second;
  }

  int operand(const Token& word) {
    if (const auto found = registers_.find(word.text); found != registers_.end()) {
      return found->second;
    }
    if (const auto special = find_special(word.text)) {
      const auto [found, added] = registers_.emplace(word.text, kernel_.registers);
      if (added) kernel_.specials.emplace_back(kernel_.registers++, *special);
      return found->second;
    }
    if (const auto number = parse_number(word.text)) return constant(*number);
    if (const auto found = symbols_.find(word.text); found != symbols_.end()) {
      const Symbol& symbol = found->second;
      if (symbol.global) {
        kernel_.globals.push_back(
            {symbol.address, symbol.bytes, !symbol.constant, found->first});
      }
      return constant(symbol.address);
    }
    if (word.text == "_") return kernel_.registers++;  // a result that is thrown away
    fail(word.line, "an operand that is not covered", word.text);
  }

  // One operand: a, {a, b}, [a + 16], or a|b.
  Group group(Words& words, Instruction& instruction) {
    Group group;
    const auto next = [&] {
      if (words.empty()) fail(instruction.line, "an operand is missing", "");
      const Token word = words[0];
      words = words.subspan(1);
      return word;
    };
    const Token first = next();
    if (first.text == "{") {
      for (Token word = next(); word.text != "}"; word = next()) {
        if (word.text != ",") group.registers.push_back(operand(word));
      }
    } else if (first.text == "[") {
      group.registers.push_back(operand(next()));
      for (Token word = next(); word.text != "]"; word = next()) {
        if (word.text == "+") word = next();
        instruction.offset += static_cast<int64_t>(parse_number(word.text).value());
      }
    } else if (instruction.flow == Flow::kBranch) {
      group.label = first.text;
    } else {
      group.registers.push_back(operand(first));
      if (!words.empty() && words[0].text == "|") {
        next();
        group.registers.push_back(operand(next()));
      }
    }
    if (!words.empty() && next().text != ",") {
      fail(instruction.line, "operands that are not covered", first.text);
    }
    return group;
  }

  // `ld.global.v4.f32`: the opcode, and what the other words say.
  const Opcode& suffixes(const Token& word, Instruction& instruction) {
    std::vector<std::string_view> parts;
    for (std::string_view rest = word.text; !rest.empty();) {
      const size_t dot = std::min(rest.find('.'), rest.size());
      parts.push_back(rest.substr(0, dot));
      rest.remove_prefix(std::min(dot + 1, rest.size()));
    }
    size_t named = 2;  // words that name the opcode
    const Opcode* opcode = nullptr;
    if (parts.size() > 1) {
      opcode = find_opcode(std::string(parts[0]) + "." + std::string(parts[1]));
    }
    if (!opcode) {
      named = 1;
      opcode = find_opcode(parts[0]);
    }
    if (!opcode) fail(word.line, "an instruction that is not covered", word.text);
    const Modifiers allowed = modifiers_of(*opcode);
    bool typed = false;
    for (size_t i = named; i < parts.size(); ++i) {
      if (Type type; parse_type(parts[i], type)) {
        instruction.other_type = typed ? instruction.type : type;
        instruction.type = type;
        typed = true;
      } else if (const auto modifier = find_modifier(parts[i]);
                 modifier && allowed[static_cast<size_t>(*modifier)]) {
        instruction.modifiers.set(static_cast<size_t>(*modifier));
      } else if (!space(parts[i], instruction.space) && !parts[i].starts_with("L1::") &&
                 !parts[i].starts_with("L2::")) {
        fail(word.line, "a modifier that is not covered", word.text);
      }
    }
    return *opcode;
  }

  static bool space(std::string_view word, Space& space) {
    static const std::map<std::string_view, Space> names{{"global", Space::kGlobal},
                                                         {"shared", Space::kShared},
                                                         {"local", Space::kLocal},
                                                         {"param", Space::kParam},
                                                         {"const", Space::kConst}};
    const auto found = names.find(word);
    if (found != names.end()) space = found->second;
    return found != names.end();
  }

  void statement(Words words) {
    Instruction instruction;
    const char* begin = words.front().text.data();
    const char* end = words.back().text.data() + words.back().text.size();
    const std::string_view text(begin, static_cast<size_t>(end - begin));
    instruction.line = words[0].line;
    if (words[0].text == "@") {
      instruction.guard_negated = words[1].text == "!";
      words = words.subspan(instruction.guard_negated ? 2 : 1);
      instruction.guard = operand(words[0]);
      words = words.subspan(1);
    }
    const Opcode& opcode = suffixes(words[0], instruction);
    instruction.execute = opcode.execute;
    instruction.flow = opcode.flow;
    instruction.together = opcode.together;
    instruction.undefined = opcode.undefined;
    words = words.subspan(1);
    for (int number = 0; !words.empty(); ++number) {
      const Group operands = group(words, instruction);
      if (!operands.label.empty()) branches_.emplace_back(kernel_.code.size(), operands.label);
      const bool output = number < opcode.outputs;
      uint8_t& count = output ? instruction.outputs : instruction.inputs;
      const auto list =
          output ? std::span<int>(instruction.out) : std::span<int>(instruction.in);
      for (const int r : operands.registers) {
        if (count == list.size()) fail(instruction.line, "too many operands", text);
        list[count++] = r;
      }
    }
    finish(instruction, text);
    kernel_.code.push_back(instruction);
    kernel_.text.emplace_back(text);
  }

  // What is worked out once from modifiers and operands.
  void finish(Instruction& instruction, std::string_view text) {
    if (instruction.has(Modifier::k_v2)) instruction.vector = 2;
    if (instruction.has(Modifier::k_v4)) instruction.vector = 4;
    for (int m = 0; m < kComparisons; ++m) {
      if (instruction.has(static_cast<Modifier>(m)))
        instruction.compare = static_cast<int8_t>(m);
    }
    const bool accesses =
        instruction.execute == execute_ld || instruction.execute == execute_st;
    if (accesses &&
        (instruction.space == Space::kShared || instruction.space == Space::kGeneric)) {
      kernel_.shared_granule = std::min(kernel_.shared_granule, instruction.type.bytes());
    }
    if (instruction.flow == Flow::kBlockBarrier) {
      // Barrier 0 of the whole block.
      if (instruction.inputs != 1 || instruction.in[0] != constant(0)) {
        fail(instruction.line, "a barrier that is not covered", text);
      }
      instruction.inputs = 0;
    }
  }

  Kernel& kernel_;
  Symbols symbols_;
  std::map<std::string, int, std::less<>> registers_;
  std::map<uint64_t, int> constants_;
  std::map<std::string, int, std::less<>> labels_;
  std::vector<std::pair<size_t, std::string_view>> branches_;
};

}  // namespace

void decode_body(Kernel& kernel, std::span<const Token> body, Symbols symbols) {
  Decoder(kernel, std::move(symbols)).run(body);
}

bool parse_type(std::string_view word, Type& type) {
  if (word == "pred") return type = {Kind::kPredicate, 1}, true;
  if (word == "tf32") return type = {Kind::kTf32, 32}, true;
  if (word == "bf16") return type = {Kind::kBFloat16, 16}, true;
  if (word == "bf16x2") return type = {Kind::kBFloat16, 32}, true;
  static const std::map<char, Kind> kinds{
      {'u', Kind::kUnsigned}, {'s', Kind::kSigned}, {'b', Kind::kBits}, {'f', Kind::kFloat}};
  const auto kind = word.empty() ? kinds.end() : kinds.find(word[0]);
  const auto bits = kind == kinds.end() ? std::nullopt : parse_number(word.substr(1));
  if (!bits) return false;
  type = {kind->second, static_cast<int>(*bits)};
  return type.bits == 8 || type.bits == 16 || type.bits == 32 || type.bits == 64;
}

Variable parse_variable(std::span<const Token>& words, int64_t& total) {
  Variable variable;
  bool pointer = false, aligned = false;
  Type type;
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
    } else if (parse_type(word.substr(1), type)) {
      variable.bytes = variable.element = type.bytes();
    }
  }
  if (!aligned) variable.align = variable.bytes;
  variable.name = word;
  while (!words.empty() && words[0].text == "[") {
    take();
    for (word = take(); word != "]"; word = take()) variable.bytes *= number(word);
  }
  variable.align = std::max<int64_t>(variable.align, 1);
  variable.offset = (total + variable.align - 1) / variable.align * variable.align;
  total = variable.offset + variable.bytes;
  return variable;
}

}  // namespace tidemark::ptx
