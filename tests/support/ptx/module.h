// The PTX of one file: its kernels by name, each decoded when it is first asked for.
//
// Threads: one at a time.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tests/support/ptx/decoder.h"
#include "tests/support/ptx/kernel.h"
#include "tests/support/ptx/lexer.h"

namespace tidemark::ptx {

class Module {
 public:
  // `file` is for messages only. Throws NotCovered.
  Module(std::string file, std::string source);

  // The names of all kernels, as mangled in the source.
  std::vector<std::string> names() const;
  // Throws NotCovered if the kernel holds what the interpreter does not know, or if there is no
  // such kernel.
  const Kernel& kernel(const std::string& name);

 private:
  struct Entry {
    std::unique_ptr<Kernel> kernel;  // without code until it is asked for
    std::span<const Token> body;
  };

  void parse();
  void parse_global(std::span<const Token>& words, bool constant);
  void parse_entry(std::span<const Token>& words);

  std::string file_;
  std::string source_;
  std::vector<Token> tokens_;
  std::vector<std::unique_ptr<std::byte[]>> globals_;  // variables in global memory
  Symbols symbols_;
  std::vector<Variable> shared_;  // of the whole module
  std::map<std::string, Entry> entries_;
};

}  // namespace tidemark::ptx
