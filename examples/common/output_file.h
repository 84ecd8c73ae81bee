// A program's output files: checked before it starts work, and written whole or not at all.
//
// Threads: functions without state.
#pragma once

#include <string>
#include <vector>

namespace tidemark {

// A path on the command line.
struct PathFlag {
  std::string flag;
  std::string path;
  std::string rewritten_by{};  // for an input: the output that may be the same file
};

// Throws UsageError if an output is a folder or its folder does not exist, if two outputs are
// the same file, or if an output is also an input. Links and "./" are resolved. Devices and
// pipes may be named more than once.
void check_outputs(const std::vector<PathFlag>& outputs, const std::vector<PathFlag>& inputs);

// Replaces `path` by `text` atomically; follows a link. A device, a pipe or standard output is
// written directly. Throws DataError.
void write_output(const std::string& path, const std::string& text);

}  // namespace tidemark
