#include "runtime/core/errors.h"

#include "runtime/core/names.h"

namespace tidemark {
namespace {

std::string with_path(const std::string& message) {
  const char* const path = current_path();
  return *path ? message + " (in " + path + ")" : message;
}

}  // namespace

UsageError::UsageError(const std::string& message) : Error(with_path(message)) {}

DataError::DataError(const std::string& file, int64_t offset, const std::string& what)
    : Error(file + (offset < 0 ? "" : ", byte " + std::to_string(offset)) + ": " + what),
      file_(file),
      offset_(offset) {}

InfeasibleBudget::InfeasibleBudget(Bytes budget, Bytes minimum, bool is_least,
                                   const std::string& remedy)
    : Error("a budget of " + std::to_string(budget.count()) + " bytes (" +
            format_bytes(budget) + ") is too small: " +
            (is_least ? "this program needs at least " : "this program is known to run in ") +
            std::to_string(minimum.count()) + " bytes (" + format_bytes(minimum) + ")" +
            (is_least ? "" : "; the dry run stopped at its limit, so less may be enough") +
            remedy),
      budget_(budget),
      minimum_(minimum) {}

namespace detail {
void check_failed(const char* file, int line, const char* condition,
                  const std::string& message) {
  throw std::logic_error(std::string(file) + ":" + std::to_string(line) + ": " + condition +
                         ": " + message);
}
}  // namespace detail

}  // namespace tidemark
