#include "tests/support/ptx/library.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>

namespace tidemark::ptx {
namespace {

thread_local const GlobalMemory* current_memory = nullptr;

std::vector<std::string> lines_of(const char* path) {
  std::ifstream in(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

}  // namespace

std::string without_hashes(std::string mangled) {
  // 61_INTERNAL_d609980f_30_name_cuda_cu_a357c377: the number before it is its length.
  for (const std::string mark : {"_GLOBAL__N__", "_INTERNAL_"}) {
    for (size_t at = mangled.find(mark); at != std::string::npos;
         at = mangled.find(mark, at + 1)) {
      size_t digits = at;
      while (digits > 0 && std::isdigit(static_cast<unsigned char>(mangled[digits - 1])) != 0)
        --digits;
      const auto length = std::strtoul(mangled.c_str() + digits, nullptr, 10);
      // Digits of a longer number may belong to what stands before.
      if (length < mark.size() + 16 || at + length > mangled.size()) continue;
      mangled.replace(at + mark.size(), 8, 8, '0');
      mangled.replace(at + length - 8, 8, 8, '0');
    }
  }
  return mangled;
}

Library::Library(std::vector<std::string> files) : files_(std::move(files)) {}

Library& Library::shipped() {
  const char* const files = std::getenv("TIDEMARK_PTX_FILES");
  static auto& library = *new Library(lines_of(files ? files : TIDEMARK_PTX_FILES));
  return library;
}

int Library::architecture() {
  const char* const other = std::getenv("TIDEMARK_PTX_ARCHITECTURE");
  return other ? std::atoi(other) : TIDEMARK_PTX_ARCHITECTURE;
}

void Library::index() {
  if (!modules_.empty()) return;
  for (const std::string& file : files_) restore(file);
}

std::string Library::text(const std::string& file) const {
  std::ifstream in(file);
  std::ostringstream all;
  all << in.rdbuf();
  if (!in) throw NotCovered("cannot read " + file);
  return all.str();
}

void Library::restore(const std::string& file) { replace(file, text(file)); }

void Library::replace(const std::string& file, std::string text) {
  const std::scoped_lock lock(mutex_);
  auto module = std::make_unique<Module>(file.substr(file.rfind('/') + 1), std::move(text));
  for (const std::string& mangled : module->names()) {
    const std::string name = without_hashes(mangled);
    by_name_[name] = file;
    mangled_[file][name] = mangled;
  }
  modules_[file] = std::move(module);
}

std::map<std::string, std::string> Library::kernels() {
  const std::scoped_lock lock(mutex_);
  index();
  return by_name_;
}

const Kernel& Library::kernel(const std::string& mangled) {
  const std::scoped_lock lock(mutex_);
  index();
  const std::string name = without_hashes(mangled);
  const auto file = by_name_.find(name);
  if (file == by_name_.end()) throw NotCovered("there is no PTX of " + mangled);
  return modules_[file->second]->kernel(mangled_[file->second][name]);
}

bool Library::run(const std::string& mangled, const Extents& grid, const Extents& threads,
                  void* const* arguments, int64_t shared) {
  const std::scoped_lock lock(mutex_);
  try {
    const Kernel& k = kernel(mangled);
    std::vector<Argument> list;
    for (size_t i = 0; i < k.parameters.size(); ++i) list.push_back({arguments[i]});
    const std::string name = without_hashes(mangled);
    counts_[name] += launch(k, grid, threads, list, GlobalScope::current(), shared);
    executed_.insert(name);
    return true;
  } catch (const std::runtime_error& error) {
    if (!report_) {
      std::fprintf(stderr, "%s\n", error.what());
      std::abort();
    }
    report_(error.what());
    return false;
  }
}

GlobalScope::GlobalScope(GlobalMemory memory)
    : memory_(std::move(memory)), before_(current_memory) {
  current_memory = &memory_;
}
GlobalScope::~GlobalScope() { current_memory = before_; }

const GlobalMemory& GlobalScope::current() {
  static const auto& none = *new GlobalMemory;
  return current_memory ? *current_memory : none;
}

}  // namespace tidemark::ptx
