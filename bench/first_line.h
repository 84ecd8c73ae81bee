// Output of shell commands, for results that name their commit.
#pragma once

#include <array>
#include <cstdio>
#include <memory>
#include <string>

namespace tidemark {

inline constexpr const char* kSaidNothing = "unknown";

// The first line that a shell command prints; kSaidNothing if it prints none.
inline std::string first_line_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::array<char, 256> line{};
  if (!pipe || !std::fgets(line.data(), line.size(), pipe.get())) return kSaidNothing;
  const std::string text(line.data());
  return text.substr(0, text.find('\n'));
}

// The commit of the checkout that contains `folder`, with "-dirty" if it has changes.
inline std::string commit_of(const std::string& folder) {
  return first_line_of("git -C '" + folder + "' describe --always --dirty 2> /dev/null");
}

}  // namespace tidemark
