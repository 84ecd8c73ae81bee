// Programs run for their answer: with a limit on their time, and in a folder that goes away.
//
// Threads: a TemporaryFolder belongs to one; run_process() may be called from any.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tidemark::planner {

// A new folder, removed with all that is in it at the end of scope. Throws DataError if none
// can be made. (It stays only if this process is killed.)
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

struct ProcessEnd {
  bool started = false;    // false: there is no such program, or it cannot be run
  bool timed_out = false;  // it was killed at the limit
  int exit_code = -1;      // -1: ended by a signal
  int signal = 0;
};

// Runs `command` (the first part is an absolute path, or looked up in PATH) with nothing to
// read, and what it prints in the file `log`, in the folder that file is in: programs drop
// files where they run. After `seconds` it and all it started are killed. Throws DataError if
// the system cannot run another process.
ProcessEnd run_process(const std::vector<std::string>& command, double seconds,
                       const std::string& log);

// In words: "exit code 1", "killed after 5.0 s", ...
std::string to_string(const ProcessEnd& end, double seconds);

}  // namespace tidemark::planner
