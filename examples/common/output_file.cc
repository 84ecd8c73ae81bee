#include "examples/common/output_file.h"

#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "examples/common/console.h"
#include "runtime/core/atomic_file.h"
#include "runtime/core/errors.h"
#include "runtime/core/text_file.h"

namespace tidemark {
namespace {

namespace fs = std::filesystem;

// The file that a write to `path` ends up in, under one name for each file.
fs::path target_of(const std::string& path) {
  std::error_code unknown;
  const fs::path target = follow_links(fs::absolute(path, unknown).string());
  const fs::path canonical = fs::weakly_canonical(target, unknown);
  return unknown ? target : canonical;
}

bool same_file(const fs::path& a, const fs::path& b) {
  std::error_code unknown;
  return a == b || fs::equivalent(a, b, unknown);
}

bool is_standard_output(const std::string& path) {
  struct stat file {
  }, out{};
  return stat(path.c_str(), &file) == 0 && fstat(STDOUT_FILENO, &out) == 0 &&
         file.st_dev == out.st_dev && file.st_ino == out.st_ino;
}

}  // namespace

void check_outputs(const std::vector<PathFlag>& outputs, const std::vector<PathFlag>& inputs) {
  std::vector<fs::path> targets;
  std::error_code unknown;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string &flag = outputs[i].flag, &path = outputs[i].path;
    const fs::path target = target_of(path);
    targets.push_back(target);
    if (is_stream(path)) continue;
    if (fs::is_directory(target, unknown)) {
      throw UsageError(fmt::format("{}: {} is a folder, not a file to write", flag, path));
    }
    if (!fs::is_directory(target.parent_path(), unknown)) {
      throw UsageError(fmt::format("{} {}: there is no folder {}", flag, path,
                                   target.parent_path().string()));
    }
    for (size_t k = 0; k < i; ++k) {
      if (!same_file(targets[k], target)) continue;
      throw UsageError(fmt::format("{} and {} would write the same file, {}", outputs[k].flag,
                                   flag, target.string()));
    }
    for (const PathFlag& input : inputs) {
      if (input.rewritten_by == flag || !same_file(target_of(input.path), target)) continue;
      throw UsageError(fmt::format("{} would overwrite {}, which {} reads", flag,
                                   target.string(), input.flag));
    }
  }
}

void write_output(const std::string& path, const std::string& text) {
  if (is_standard_output(path)) return write_console(stdout, text);
  write_text_file(path, text);
}

}  // namespace tidemark
