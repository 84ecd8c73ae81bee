// Runs programs with a time limit, in a temporary folder.
//
// Threads: a TemporaryFolder belongs to one; run_process() may be called from any.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tidemark::planner {

// A new folder, removed with its contents at the end of scope. Throws DataError if none can be
// made. The folder stays if this process is killed.
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
  bool started = false;    // false: the program does not exist or cannot be run
  bool timed_out = false;  // killed at the limit
  int exit_code = -1;      // -1: ended by a signal
  int signal = 0;
};

// Runs `command` without input. Its first part is an absolute path or is looked up in PATH. The
// output goes to the file `log`; the program runs in that file's folder, because programs drop
// files where they run. After `seconds` the program and its children are killed. Throws
// DataError if the system cannot start another process.
ProcessEnd run_process(const std::vector<std::string>& command, double seconds,
                       const std::string& log);

// As text: "exit code 1", "killed after 5.0 s", ...
std::string to_string(const ProcessEnd& end, double seconds);

}  // namespace tidemark::planner
