// The files that a program is asked to write: checked before it works, written whole or not at
// all.
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
  std::string rewritten_by{};  // of an input: the output that may be the same file
};

// Throws UsageError if an output is a folder or lies in none that exists, if two outputs are
// one file, or if an output is one of the inputs; links and "./" are seen through. Devices and
// pipes may be named more than once.
void check_outputs(const std::vector<PathFlag>& outputs, const std::vector<PathFlag>& inputs);

// Puts `text` at `path` at once, so that no part of it is ever found there; a link is followed.
// To a device, a pipe or standard output it is written as it is. Throws DataError.
void write_output(const std::string& path, const std::string& text);

}  // namespace tidemark
