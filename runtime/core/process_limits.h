// The limits of this process: its control groups (versions 1 and 2) and its resource limits.
//
// Each reader takes `root`, the folder with /proc and /sys; tests pass their own. A missing or
// malformed file means no limit, never an error.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/units.h"

namespace tidemark {

// The number after the word `key` at the start of a line; without a key, the first number of
// the file. None for "max".
std::optional<int64_t> read_number(const std::filesystem::path& file,
                                   const std::string& key = "");

// The value of a line "KEY NUMBER kB" in a /proc file; `key` includes its colon.
std::optional<Bytes> read_kib(const std::filesystem::path& file, const std::string& key);

struct ControlGroup {
  std::string path;              // "/a/b"; "/" is the root
  std::filesystem::path folder;  // contains its files
};

// The control groups that bound `controller` ("cpu", "memory") for this process: its own and
// their ancestors, for each version, innermost first. In a container the mount is the group
// itself, and /proc may name a group that exists only outside: a folder need not exist.
std::vector<ControlGroup> control_groups(const std::string& controller,
                                         const std::filesystem::path& root = "/");

// The value of a resource limit (getrlimit), for example RLIMIT_FSIZE. None if unlimited.
std::optional<Bytes> resource_limit(int resource);

// A limit on the memory of this process alone, and its current use.
struct ProcessLimit {
  const char* name;  // "RLIMIT_AS"
  const char* flag;  // ulimit's flag: "-v"
  const char* what;  // "address space"
  Bytes limit{0};
  Bytes taken{0};
};
// RLIMIT_AS and RLIMIT_DATA, where they are set.
std::vector<ProcessLimit> process_limits(const std::filesystem::path& root = "/");

}  // namespace tidemark
