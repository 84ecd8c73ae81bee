// Names for people: of tensors ("layer3.2.conv1.weight") and of operators' calls
// ("layer3.2.conv1: conv2d"). Events, messages and recorded steps carry them. Nothing is
// decided by them, and no cache or comparison of steps looks at them.
//
// A name is text that lives as long as the process, so that storages and events hold a pointer:
// a literal, or what a function below gives. Equal text that these give is one pointer.
//
// Threads: any. The path and the latest names are each thread's own.
#pragma once

#include <cstddef>
#include <string_view>

namespace tidemark {

namespace detail {
inline thread_local const char* current_path = "";
}

// Gives "" once the names of the process take kMaxNameBytes: what would be unnamed is then
// called after its operator alone.
inline constexpr size_t kMaxNameBytes = size_t{8} << 20;
const char* intern(std::string_view text);

// Where this thread is in its program, the path of a module: "layer3.2.conv1". "": nowhere.
inline const char* current_path() { return detail::current_path; }

// The thread is there while this lives. REQUIRES: `path` lives as long as the process.
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

// A call of `op` from here: "layer3.2.conv1: conv2d", or `op` itself where the path is "".
const char* call_name(const char* op);
// What that call gives: its name, for the second output "layer3.2.bn1: batch_norm, output 1".
const char* output_name(const char* call, size_t output);

}  // namespace tidemark
