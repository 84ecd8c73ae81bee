#include "runtime/planner/papers/solver/process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <thread>

#include "runtime/core/errors.h"
#include "runtime/planner/limits.h"

namespace tidemark::planner {

TemporaryFolder::TemporaryFolder() {
  std::error_code error;
  const std::filesystem::path base = std::filesystem::temp_directory_path(error);
  std::string path = ((error ? "/tmp" : base) / "tidemark-XXXXXX").string();
  if (mkdtemp(path.data()) == nullptr) {
    throw DataError(path, std::string("cannot create this folder: ") + std::strerror(errno));
  }
  path_ = path;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

namespace {

// Runs in the child, between fork and exec: must not allocate or lock. Returns only on failure.
void become(char* const* arguments, const char* log, const char* folder, pid_t parent) {
  // The child gets a group of its own, so that it can be killed with all that it starts; and it
  // dies with its parent.
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) return;
  const int in = open("/dev/null", O_RDONLY);
  const int out = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (in < 0 || out < 0 || chdir(folder) != 0) return;
  if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
      dup2(out, STDERR_FILENO) < 0) {
    return;
  }
  // The child must not inherit the signal mask of this thread.
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execv(arguments[0], arguments);
}

bool has_ended(pid_t pid) {
  siginfo_t info{};
  // WNOWAIT: the child stays a zombie, so that its group's number is not reused before it is
  // killed.
  return waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
         info.si_pid == pid;
}

}  // namespace

ProcessEnd run_process(const std::vector<std::string>& command, double seconds,
                       const std::string& log) {
  const Stopwatch watch(seconds);
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& part : command) arguments.push_back(const_cast<char*>(part.c_str()));
  arguments.push_back(nullptr);
  const std::string folder = std::filesystem::path(log).parent_path().string();
  ProcessEnd end;
  // exec closes this pipe; a byte in it means that exec failed.
  int failed[2] = {-1, -1};
  if (pipe2(failed, O_CLOEXEC) != 0) {
    throw DataError(command[0], std::string("cannot be started: ") + std::strerror(errno));
  }
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    become(arguments.data(), log.c_str(), folder.c_str(), parent);
    [[maybe_unused]] const auto written = write(failed[1], "", 1);
    _exit(127);
  }
  const int error = errno;
  close(failed[1]);
  char byte = 0;
  ssize_t got = 0;
  while (pid > 0 && (got = read(failed[0], &byte, 1)) < 0 && errno == EINTR) {
  }
  close(failed[0]);
  if (pid < 0) {
    throw DataError(command[0], std::string("cannot be started: ") + std::strerror(error));
  }
  if (got > 0) {
    waitpid(pid, nullptr, 0);
    return end;
  }
  end.started = true;

  auto nap = std::chrono::microseconds(200);
  while (!has_ended(pid)) {
    if (watch.expired()) {
      end.timed_out = true;
      break;
    }
    std::this_thread::sleep_for(nap);
    nap = std::min(2 * nap, std::chrono::microseconds(10'000));
  }
  kill(-pid, SIGKILL);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  return end;
}

std::string to_string(const ProcessEnd& end, double seconds) {
  if (!end.started) return "could not be started";
  if (end.timed_out) {
    std::string text = std::to_string(std::max(0.0, seconds));
    text.resize(text.find('.') + 2);
    return "killed after " + text + " s";
  }
  if (end.signal != 0) return "ended by signal " + std::to_string(end.signal);
  return "exit code " + std::to_string(end.exit_code);
}

}  // namespace tidemark::planner
