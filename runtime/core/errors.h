// Tidemark's exceptions. A message states what happened, to which operator or file, with the
// numbers at fault, and what to do about it.
//
// Expected outcomes (does not fit, not evictable) are return values, not exceptions.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "runtime/core/units.h"

namespace tidemark {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The request is invalid: shapes that do not match, a wrong flag. Within a module, the message
// names it: "... (in layer3.2.conv1)".
class UsageError : public Error {
 public:
  explicit UsageError(const std::string& message);
};

// A file is missing, corrupt or cannot be written. `offset`: of the byte at fault; -1 for the
// file as a whole, not shown in the message.
class DataError : public Error {
 public:
  DataError(const std::string& file, const std::string& what) : DataError(file, -1, what) {}
  DataError(const std::string& file, int64_t offset, const std::string& what);
  const std::string& file() const { return file_; }
  int64_t offset() const { return offset_; }

 private:
  std::string file_;
  int64_t offset_;
};

// Work on a device failed (a kernel, a copy, disk I/O). The session stays usable: unfinished
// work is tried again when next needed.
class DeviceError : public Error {
 public:
  using Error::Error;
};

// An operator's working set does not fit, whatever is released. The session stays usable.
class OutOfMemory : public Error {
 public:
  OutOfMemory(const std::string& message, Bytes requested, Bytes budget)
      : Error(message), requested_(requested), budget_(budget) {}
  Bytes requested() const { return requested_; }
  Bytes budget() const { return budget_; }

 private:
  Bytes requested_;
  Bytes budget_;
};

// The budget is below the program's need under any schedule; `minimum` would suffice.
class InfeasibleBudget : public Error {
 public:
  // `is_least`: no smaller budget suffices; false: unknown. `remedy` ends the message: another
  // way to make the program fit.
  InfeasibleBudget(Bytes budget, Bytes minimum, bool is_least = true,
                   const std::string& remedy = "");
  Bytes budget() const { return budget_; }
  Bytes minimum() const { return minimum_; }

 private:
  Bytes budget_;
  Bytes minimum_;
};

// Throws std::logic_error: an invariant of Tidemark itself is broken. Always on.
#define TIDEMARK_CHECK(condition, message)                                       \
  do {                                                                           \
    if (!(condition))                                                            \
      ::tidemark::detail::check_failed(__FILE__, __LINE__, #condition, message); \
  } while (false)

namespace detail {
[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const std::string& message);
}

}  // namespace tidemark
