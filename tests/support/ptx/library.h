// The kernels that ship: the PTX files of a build, and the kernels in them by name. It also
// holds what a launch needs besides its arguments: which memory the kernel may use, and who is
// told of violations.
//
// Threads: launches run one after the other; a GlobalScope is of its thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/ptx/launch.h"
#include "tests/support/ptx/module.h"

namespace tidemark::ptx {

// nvcc names what is private to a file after the file and a hash, which differs between
// compiling to PTX and to an object. Here the hashes are zeros.
std::string without_hashes(std::string mangled);

class Library {
 public:
  explicit Library(std::vector<std::string> files);
  // The files that the file TIDEMARK_PTX_FILES lists: a variable of the environment, or else a
  // definition of this library's target.
  static Library& shipped();
  // The architecture that they are for, such as 80: TIDEMARK_PTX_ARCHITECTURE.
  static int architecture();

  // All kernels, by names without hashes, with the file that each is in.
  std::map<std::string, std::string> kernels();
  const Kernel& kernel(const std::string& mangled);
  // Runs a launch with `shared` more bytes of shared memory than the kernel declares, and
  // reports what it violates. False if it violates anything.
  bool run(const std::string& mangled, const Extents& grid, const Extents& threads,
           void* const* arguments, int64_t shared);
  // Names of the kernels that were run to their end.
  const std::set<std::string>& executed() const { return executed_; }
  // What they did in all, by their names without hashes, since this was called last.
  std::map<std::string, Counts> take_counts() { return std::exchange(counts_, {}); }

  // Violations and gaps go here. Before one is set, they end the program.
  void report_to(std::function<void(const std::string&)> report) {
    report_ = std::move(report);
  }

  // A file's text, and its replacement by another from now on.
  std::string text(const std::string& file) const;
  void replace(const std::string& file, std::string text);
  void restore(const std::string& file);

 private:
  void index();

  std::vector<std::string> files_;
  std::map<std::string, std::string> by_name_;  // without hashes -> file
  std::map<std::string, std::unique_ptr<Module>> modules_;
  std::map<std::string, std::map<std::string, std::string>> mangled_;  // per file, by name
  std::set<std::string> executed_;
  std::map<std::string, Counts> counts_;
  std::function<void(const std::string&)> report_;
  std::recursive_mutex mutex_;
};

// While a scope lives, launches of its thread may use this memory and no other.
class GlobalScope {
 public:
  explicit GlobalScope(GlobalMemory memory);
  ~GlobalScope();
  GlobalScope(const GlobalScope&) = delete;
  GlobalScope& operator=(const GlobalScope&) = delete;

  static const GlobalMemory& current();

 private:
  GlobalMemory memory_;
  const GlobalMemory* before_;
};

}  // namespace tidemark::ptx
