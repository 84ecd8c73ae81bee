#include "examples/common/program.h"

#include <exception>
#include <optional>

#include "examples/common/console.h"
#include "examples/common/memory_limits.h"
#include "runtime/core/errors.h"

namespace tidemark {

int explain_errors(const std::string& program, const std::function<int()>& body) {
  const auto explain = [&](const std::exception& error, ExitCode code) {
    print_error("{}: {}\n", program, error.what());
    return code;
  };
  try {
    return body();
  } catch (const InfeasibleBudget& error) {
    return explain(error, kOutOfMemory);
  } catch (const InfeasibleMemory& error) {
    return explain(error, kOutOfMemory);
  } catch (const OutOfMemory& error) {
    return explain(error, kOutOfMemory);
  } catch (const UsageError& error) {
    return explain(error, kBadInput);
  } catch (const DataError& error) {
    return explain(error, kBadInput);
  } catch (const std::exception& error) {
    return explain(error, kFailed);
  }
}

int run_program(const std::string& program, const std::function<int()>& body) {
  guard_standard_streams();
  const int code = explain_errors(program, body);
  const std::optional<std::string> lost = lost_output();
  if (!lost) return code;
  print_error("{}: standard output could not be written: {}\n", program, *lost);
  return code == kDone ? int{kFailed} : code;
}

}  // namespace tidemark
