#include "tests/support/ptx/decoder.h"

#include <algorithm>
#include <optional>
#include <set>

#include "tests/support/ptx/declarations.h"
#include "tests/support/ptx/instructions.h"
#include "tests/support/ptx/suffixes.h"
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
    bool address = false;
    int64_t offset = 0;  // of an address
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
      if (name == ".shared" && uses_added_) fail(line, "it is declared late", rest[0].text);
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
          registers_[name + std::to_string(n)] = new_register(words[0].text);
        }
        i += 3;
      } else if (name != ",") {
        registers_.emplace(name, new_register(words[0].text));
      }
    }
  }

  int new_register(std::string_view type) {
    if (type == ".pred") predicates_.insert(kernel_.registers);
    return kernel_.registers++;
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
      if (symbol.added) {
        uses_added_ = true;
        kernel_.shared_bytes = (kernel_.shared_bytes + 15) / 16 * 16;
        return constant(static_cast<uint64_t>(kernel_.shared_bytes));
      }
      if (symbol.global) {
        kernel_.globals.push_back(
            {symbol.address, symbol.bytes, !symbol.constant, found->first});
      }
      return constant(symbol.address);
    }
    if (word.text == "_") return kernel_.registers++;  // a result that is thrown away
    fail(word.line, "an operand that is not covered", word.text);
  }

  // Parses an operand: a, {a, b}, [a + 16], or a|b.
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
      group.address = true;
      group.registers.push_back(operand(next()));
      for (Token word = next(); word.text != "]"; word = next()) {
        if (word.text == "+") word = next();
        group.offset += static_cast<int64_t>(parse_number(word.text).value());
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
    const std::string place = kernel_.file + ":" + std::to_string(instruction.line);
    const Opcode& opcode = decode_suffixes(words[0].text, place, instruction);
    instruction.execute = opcode.execute;
    instruction.flow = opcode.flow;
    instruction.together = opcode.together;
    instruction.undefined = opcode.undefined;
    words = words.subspan(1);
    int addresses = 0;
    for (int number = 0; !words.empty(); ++number) {
      const Group operands = group(words, instruction);
      if (operands.address) {
        (addresses++ == 0 ? instruction.offset : instruction.second_offset) = operands.offset;
      }
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

  // Works out, once, the fields that follow from modifiers and operands.
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
    if (instruction.execute == execute_cp_async && !is_known_copy(instruction)) {
      fail(instruction.line, "a copy that is not covered", text);
    }
    instruction.flops = flops_of(instruction);
  }

  // Comparisons, choices and signs are none. A product of tensor cores has 16 x 8 x 8 or 16 x 8
  // x 16 pairs for its 32 lanes.
  static int flops_of(const Instruction& instruction) {
    const auto is_one_of = [&](auto... execute) {
      return ((instruction.execute == execute) || ...);
    };
    if (is_one_of(execute_mma)) return instruction.has(Modifier::k_m16n8k16) ? 128 : 64;
    if (instruction.type.kind != Kind::kFloat) return 0;
    if (is_one_of(execute_fma)) return 2;
    return is_one_of(execute_add, execute_sub, execute_mul, execute_div, execute_rcp,
                     execute_sqrt, execute_rsqrt, execute_ex2, execute_lg2, execute_sin,
                     execute_cos)
               ? 1
               : 0;
  }

  // Copies have 16 bytes, with .ca 4 or 8 too. Instead of the number of bytes that are read,
  // PTX also allows a predicate.
  bool is_known_copy(const Instruction& copy) {
    if (copy.inputs < 3 || copy.inputs > 4) return false;
    if (copy.inputs == 4 && predicates_.contains(copy.in[3])) return false;
    const int bytes = copy.in[2];
    return bytes == constant(16) ||
           (copy.has(Modifier::k_ca) && (bytes == constant(4) || bytes == constant(8)));
  }

  Kernel& kernel_;
  Symbols symbols_;
  bool uses_added_ = false;  // shared memory
  std::map<std::string, int, std::less<>> registers_;
  std::set<int> predicates_;  // of the registers
  std::map<uint64_t, int> constants_;
  std::map<std::string, int, std::less<>> labels_;
  std::vector<std::pair<size_t, std::string_view>> branches_;
};

}  // namespace

void decode_body(Kernel& kernel, std::span<const Token> body, Symbols symbols) {
  Decoder(kernel, std::move(symbols)).run(body);
}

}  // namespace tidemark::ptx
