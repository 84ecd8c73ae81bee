#include "models/checkpoint/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/core/atomic_file.h"
#include "runtime/core/errors.h"
#include "runtime/core/log.h"

namespace tidemark {
namespace {

constexpr std::string_view kHolder = "locked by Tidemark, process ";

std::string lock_text(pid_t holder) {
  return std::string(kHolder) + std::to_string(holder) + "\n";
}

// The file's text if it is no longer than that of a lock; otherwise none of it.
std::optional<std::string> short_text(int file) {
  std::array<char, 64> text{};
  const ssize_t read = pread(file, text.data(), text.size(), 0);
  if (read < 0 || static_cast<size_t>(read) == text.size()) return std::nullopt;
  return std::string(text.data(), static_cast<size_t>(read));
}

// The process that wrote this text of a lock.
std::optional<std::string> holder_in(const std::string& text) {
  if (!text.starts_with(kHolder) || !text.ends_with('\n')) return std::nullopt;
  std::string process = text.substr(kHolder.size(), text.size() - kHolder.size() - 1);
  if (process.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  return process;
}

}  // namespace

FileLock::FileLock(const std::string& path)
    : lock_path_(regular_target(path) + ".lock"), owner_(getpid()) {
  const auto refuse = [&](const std::string& what) {
    if (file_ >= 0) close(file_);
    throw DataError(path, what);
  };
  const auto fail = [&](const std::string& what) {
    refuse(what + ": " + std::strerror(errno));
  };
  bool locks = true;
  while (true) {
    constexpr int kFlags = O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
    file_ = open(lock_path_.c_str(), kFlags | O_CREAT | O_EXCL, 0666);
    remove_ = file_ >= 0;
    if (file_ < 0 && errno == EEXIST) {
      file_ = open(lock_path_.c_str(), kFlags);
      if (file_ < 0 && errno == ENOENT) continue;  // removed by its holder meanwhile
    }
    if (file_ < 0) fail("cannot be locked because " + lock_path_ + " cannot be opened");
    int result = 0;
    do {
      result = flock(file_, LOCK_EX | LOCK_NB);
    } while (result != 0 && errno == EINTR);
    if (result != 0 && errno == EWOULDBLOCK) {
      const std::optional<std::string> holder = holder_in(short_text(file_).value_or(""));
      refuse("is in use by another run" + (holder ? " (process " + *holder + ")" : ""));
    }
    locks = result == 0;
    if (!locks && errno != ENOLCK && errno != EOPNOTSUPP && errno != ENOSYS) {
      fail("cannot be locked");
    }
    if (is_at(file_, lock_path_)) break;
    // The lock's last holder removed the file after it was opened here.
    close(file_);
  }
  const std::optional<std::string> text = short_text(file_);
  const bool by_a_run = text && holder_in(*text);
  if (!text || (!text->empty() && !by_a_run)) {
    refuse("cannot be locked because " + lock_path_ +
           " is not a lock file of Tidemark's; move it away");
  }
  remove_ = remove_ || by_a_run;
  if (!locks) {
    log().warn(
        "{}: this file system has no locks; two runs that save to the file will not be "
        "detected",
        path);
    return;
  }
  // The process id is for messages only: the lock holds without it, as on a full disk.
  const std::string holder = lock_text(owner_);
  const auto length = static_cast<ssize_t>(holder.size());
  if (ftruncate(file_, 0) != 0 || pwrite(file_, holder.data(), holder.size(), 0) != length) {
    const std::string why = std::strerror(errno);
    log().warn("{}: cannot be written: {}", lock_path_, why);
    remove_ = ftruncate(file_, 0) == 0 && remove_;  // a partial text would be refused
  }
}

FileLock::~FileLock() {
  // The file is removed while the lock is held, so that no other holder's file is removed.
  if (owner_ == getpid() && is_at(file_, lock_path_)) {
    if (!remove_) {
      // A failure does no harm: the text that remains is that of a lock.
      [[maybe_unused]] const int result = ftruncate(file_, 0);
    } else {
      unlink(lock_path_.c_str());
    }
  }
  close(file_);
}

}  // namespace tidemark
