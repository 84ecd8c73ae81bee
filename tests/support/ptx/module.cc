#include "tests/support/ptx/module.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "tests/support/ptx/declarations.h"
#include "tests/support/ptx/decoder.h"
#include "tests/support/ptx/violation.h"

namespace tidemark::ptx {
namespace {

using Words = std::span<const Token>;

Words until(Words& words, std::string_view end) {
  const auto found =
      std::find_if(words.begin(), words.end(), [end](const Token& t) { return t.text == end; });
  const Words before(words.begin(), found);
  words = Words(found == words.end() ? found : found + 1, words.end());
  return before;
}

// The words between a brace, the first of `words`, and its closing brace.
Words braces(Words& words) {
  size_t end = 0;
  int depth = 0;
  do {
    if (words[end].text == "{") ++depth;
    if (words[end].text == "}") --depth;
    ++end;
  } while (depth > 0 && end < words.size());
  const Words inside = words.subspan(1, end - 2);
  words = words.subspan(end);
  return inside;
}

void skip_line(Words& words) {
  const int line = words[0].line;
  while (!words.empty() && words[0].line == line) words = words.subspan(1);
}

int64_t number(const Token& word) {
  return static_cast<int64_t>(parse_number(word.text).value_or(0));
}

}  // namespace

Module::Module(std::string file, std::string source)
    : file_(std::move(file)), source_(std::move(source)), tokens_(tokenize(source_)) {
  parse();
}

void Module::parse() {
  Words words = tokens_;
  while (!words.empty()) {
    const std::string_view text = words[0].text;
    if (text == ".version" || text == ".target" || text == ".address_size" || text == ".file") {
      skip_line(words);
    } else if (text == ".visible" || text == ".weak" || text == ".extern") {
      words = words.subspan(1);
    } else if (text == ".global" || text == ".const") {
      words = words.subspan(1);
      parse_global(words, text == ".const");
    } else if (text == ".shared") {
      words = words.subspan(1);
      int64_t alone = 0;
      shared_.push_back(parse_variable(words, alone));
      until(words, ";");
    } else if (text == ".entry") {
      words = words.subspan(1);
      parse_entry(words);
    } else if (text == ".section") {
      until(words, "{");
      until(words, "}");
    } else {
      throw NotCovered(file_ + ":" + std::to_string(words[0].line) + ": " + std::string(text));
    }
  }
}

void Module::parse_global(Words& words, bool constant) {
  int64_t alone = 0;
  const Variable variable = parse_variable(words, alone);
  globals_.push_back(std::make_unique<std::byte[]>(static_cast<size_t>(variable.bytes)));
  std::byte* const memory = globals_.back().get();
  int64_t at = 0;
  for (const Token& word : until(words, ";")) {
    if (word.text.find_first_of("={,}") == 0) continue;
    if (at + variable.element > variable.bytes) {
      throw NotCovered(file_ + ": the initial values of " + variable.name);
    }
    const int64_t value = number(word);
    std::memcpy(memory + at, &value, static_cast<size_t>(variable.element));
    at += variable.element;
  }
  const auto address = reinterpret_cast<uintptr_t>(memory);
  symbols_[variable.name] = {address, variable.bytes, true, constant};
}

void Module::parse_entry(Words& words) {
  auto kernel = std::make_unique<Kernel>();
  kernel->name = words[0].text;
  kernel->file = file_;
  words = words.subspan(1);
  if (words[0].text == "(") {
    words = words.subspan(1);
    Words list = until(words, ")");
    while (!list.empty()) {
      if (list[0].text == "," || list[0].text == ".param") {
        list = list.subspan(1);
      } else {
        kernel->parameters.push_back(parse_variable(list, kernel->parameter_bytes));
      }
    }
  }
  for (; words[0].text != "{"; words = words.subspan(1)) {
    if (words[0].text == ".maxntid" || words[0].text == ".reqntid") {
      kernel->max_threads = 1;
      for (size_t i = 1; words[i].text == "," || !words[i].text.starts_with('.'); ++i) {
        if (words[i].text == "{") break;
        if (words[i].text != ",") kernel->max_threads *= static_cast<int>(number(words[i]));
      }
    }
  }
  const Words body = braces(words);
  const std::string name = kernel->name;
  entries_[name] = {std::move(kernel), body};
}

std::vector<std::string> Module::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  return names;
}

const Kernel& Module::kernel(const std::string& name) {
  const auto found = entries_.find(name);
  if (found == entries_.end()) throw NotCovered(file_ + " has no kernel " + name);
  auto& [kernel, body] = found->second;
  if (kernel->code.empty()) {
    Symbols symbols = symbols_;
    for (const Variable& v : kernel->parameters) {
      symbols[v.name] = {static_cast<uint64_t>(v.offset), v.bytes};
    }
    // Each kernel that names one of the module's shared variables has its own.
    for (const Variable& shared : shared_) {
      if (shared.bytes == 0) {
        symbols[shared.name].added = true;
        continue;
      }
      const bool named = std::any_of(body.begin(), body.end(),
                                     [&](const Token& t) { return t.text == shared.name; });
      if (!named) continue;
      const int64_t align = shared.align;
      const int64_t at = (kernel->shared_bytes + align - 1) / align * align;
      symbols[shared.name] = {static_cast<uint64_t>(at), shared.bytes};
      kernel->shared_bytes = at + shared.bytes;
    }
    decode_body(*kernel, body, std::move(symbols));
  }
  return *kernel;
}

}  // namespace tidemark::ptx
