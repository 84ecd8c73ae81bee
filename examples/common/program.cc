#include "examples/common/program.h"

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <new>
#include <optional>
#include <system_error>

#include "examples/common/console.h"
#include "examples/common/memory_limits.h"
#include "runtime/core/errors.h"
#include "runtime/core/listed.h"
#include "runtime/core/process_limits.h"
#include "runtime/device/pages.h"

namespace tidemark {
namespace {

// The name of the program while it works; otherwise null.
const char* working = nullptr;

// OpenMP's runtime calls exit(1) if it cannot start a thread. Nothing else in a program calls
// exit() before its work is done.
void exit_of_a_library() {
  if (!working) return;
  print_error("{}: OpenMP cannot start its threads{}\n", working, memory_limits());
  _exit(kOutOfMemory);
}

}  // namespace

int explain_errors(const std::string& program, const std::function<int()>& body) {
  const auto explain = [&](const std::exception& error, ExitCode code) {
    // Bad files are quoted; only messages about memory have several lines.
    print_error("{}: {}\n", program,
                code == kBadInput ? printable(error.what()) : std::string(error.what()));
    return code;
  };
  const auto no_memory = [&](const char* what) {
    print_error("{}: {}{}\n", program, what, memory_limits());
    return kOutOfMemory;
  };
  try {
    return body();
  } catch (const InfeasibleBudget& error) {
    return explain(error, kOutOfMemory);
  } catch (const InfeasibleMemory& error) {
    return explain(error, kOutOfMemory);
  } catch (const OutOfMemory& error) {
    return explain(error, kOutOfMemory);
  } catch (const HostMemoryError& error) {
    return explain(error, kOutOfMemory);
  } catch (const std::bad_alloc&) {
    return no_memory("host memory ran out");
  } catch (const std::filesystem::filesystem_error& error) {
    return explain(error, kBadInput);
  } catch (const std::system_error& error) {
    const bool refused = error.code() == std::errc::resource_unavailable_try_again ||
                         error.code() == std::errc::not_enough_memory;
    return refused ? no_memory("a thread cannot be started") : explain(error, kFailed);
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
  std::signal(SIGXFSZ, SIG_IGN);  // a file that grows too large becomes a write error
  // Each thread would reserve 64 MiB of address space, and oneDNN ends by a signal if it gets
  // no memory for a kernel.
  if (resource_limit(RLIMIT_AS)) ::mallopt(M_ARENA_MAX, 1);
  std::atexit(exit_of_a_library);
  working = program.c_str();
  const int code = explain_errors(program, body);
  working = nullptr;
  const std::optional<std::string> lost = lost_output();
  if (!lost) return code;
  print_error("{}: standard output could not be written: {}\n", program, *lost);
  return code == kDone ? int{kFailed} : code;
}

}  // namespace tidemark
