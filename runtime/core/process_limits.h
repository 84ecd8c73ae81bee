// What the system says that this process may have: its control groups (versions 1 and 2) and
// its resource limits.
//
// Each reader takes `root`, below which /proc and /sys are looked for; tests have one of their
// own. A file that is missing or says something else is no limit, never an error.
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

// The number after the word `key`, which starts a line; without a key, the first one of the
// file. None for "max".
std::optional<int64_t> read_number(const std::filesystem::path& file,
                                   const std::string& key = "");

// Of a line "KEY NUMBER kB" in a file of /proc; `key` includes its colon.
std::optional<Bytes> read_kib(const std::filesystem::path& file, const std::string& key);

struct ControlGroup {
  std::string path;              // "/a/b"; "/" is the topmost
  std::filesystem::path folder;  // with its files
};

// The control groups that bound `controller` ("cpu", "memory") for this process: the one that
// it is in and those above it, for each version, innermost first. In a container the mount is
// the group itself, and /proc may name one that exists outside alone: a folder need not exist.
std::vector<ControlGroup> control_groups(const std::string& controller,
                                         const std::filesystem::path& root = "/");

// A resource limit that is set (getrlimit), for example RLIMIT_FSIZE.
std::optional<Bytes> resource_limit(int resource);

// A limit on the memory of this process alone, and how much of it is taken.
struct ProcessLimit {
  const char* name;  // "RLIMIT_AS"
  const char* flag;  // of ulimit: "-v"
  const char* what;  // "address space"
  Bytes limit{0};
  Bytes taken{0};
};
// RLIMIT_AS and RLIMIT_DATA, where they are set.
std::vector<ProcessLimit> process_limits(const std::filesystem::path& root = "/");

}  // namespace tidemark
