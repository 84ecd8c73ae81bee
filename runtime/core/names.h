// Names for people: of tensors ("layer3.2.conv1.weight") and of calls ("layer3.2.conv1:
// conv2d"). Events, messages and recorded steps contain them. They affect no decision, cache or
// comparison of steps.
//
// A name is text that lives as long as the process, so that storages and events can hold a
// pointer: a literal, or the result of a function below. Equal results are one pointer.
//
// Threads: any. The path and the latest names are thread-local.
#pragma once

#include <cstddef>
#include <string_view>

namespace tidemark {

namespace detail {
inline thread_local const char* current_path = "";
}

// Returns "" once the names of the process take kMaxNameBytes; later calls are then named after
// their operator alone.
inline constexpr size_t kMaxNameBytes = size_t{8} << 20;
const char* intern(std::string_view text);

// This thread's position in its program, as the path of a module: "layer3.2.conv1". "": none.
inline const char* current_path() { return detail::current_path; }

// Sets the thread's path during this object's life. REQUIRES: `path` lives as long as the
// process.
class ScopedPath {
 public:
  explicit ScopedPath(const char* path) : before_(detail::current_path) {
    detail::current_path = path;
  }
  ~ScopedPath() { detail::current_path = before_; }
  ScopedPath(const ScopedPath&) = delete;
  ScopedPath& operator=(const ScopedPath&) = delete;

 private:
  const char* before_;
};

// A call of `op` at the current path: "layer3.2.conv1: conv2d", or `op` itself if the path is
// "".
const char* call_name(const char* op);
// An output's name: the call's name, for the second output "layer3.2.bn1: batch_norm, output
// 1".
const char* output_name(const char* call, size_t output);

}  // namespace tidemark
