// The errors that Tidemark throws. A message says what happened, to which operator or file,
// with the numbers at fault, and what to do about it.
//
// Expected outcomes (does not fit, not evictable) are return values; these are for the rest.
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

// The caller asked for something that has no meaning: shapes that do not match, a wrong flag.
// Where a module is at work, the message says which: "... (in layer3.2.conv1)".
class UsageError : public Error {
 public:
  explicit UsageError(const std::string& message);
};

// A file is missing, corrupt or cannot be written. `offset`: of the byte at fault; -1, which
// the message does not show, where the file as a whole is.
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

// Work on a device failed (a kernel, a copy, disk I/O). The session stays usable: what was not
// done is tried again when it is next needed.
class DeviceError : public Error {
 public:
  using Error::Error;
};

// An operator's working set cannot be made to fit. The session stays usable.
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

// A budget below what the program needs under any schedule; `minimum` would do.
class InfeasibleBudget : public Error {
 public:
  // `is_least`: nothing less than the minimum does; else that is not known. `remedy` ends the
  // message: what else would help.
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
