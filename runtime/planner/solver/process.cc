#include "runtime/planner/solver/process.h"

#include <fcntl.h>
#include <spawn.h>
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
    throw DataError(path, 0, std::string("cannot make this folder: ") + std::strerror(errno));
  }
  path_ = path;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

namespace {

// What posix_spawn() is told; freed at the end of scope.
struct SpawnSettings {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;

  explicit SpawnSettings(const std::string& log) {
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, log.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
    const std::string folder = std::filesystem::path(log).parent_path().string();
    posix_spawn_file_actions_addchdir_np(&files, folder.c_str());
    posix_spawnattr_init(&attributes);
    // A group of its own, so that it can be killed with all it starts.
    posix_spawnattr_setpgroup(&attributes, 0);
    // What a thread of ours blocks or ignores, it does not.
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
};

bool has_ended(pid_t pid) {
  siginfo_t info{};
  // It stays a zombie, so that its group's number cannot be another's when that is killed.
  return waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
         info.si_pid == pid;
}

}  // namespace

ProcessEnd run_process(const std::vector<std::string>& command, double seconds,
                       const std::string& log) {
  const Stopwatch watch(seconds);
  std::vector<char*> arguments;
  for (const std::string& part : command) arguments.push_back(const_cast<char*>(part.c_str()));
  arguments.push_back(nullptr);
  ProcessEnd end;
  pid_t pid = 0;
  const SpawnSettings settings(log);
  const int error = posix_spawnp(&pid, arguments[0], &settings.files, &settings.attributes,
                                 arguments.data(), environ);
  if (error == EAGAIN || error == ENOMEM) {
    throw DataError(command[0], 0, std::string("cannot be started: ") + std::strerror(error));
  }
  if (error != 0) return end;
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
    std::string text = std::to_string(seconds);
    text.resize(text.find('.') + 2);
    return "killed after " + text + " s";
  }
  if (end.signal != 0) return "ended by signal " + std::to_string(end.signal);
  return "exit code " + std::to_string(end.exit_code);
}

}  // namespace tidemark::planner
