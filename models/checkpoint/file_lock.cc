#include "models/checkpoint/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "models/checkpoint/atomic_file.h"
#include "runtime/core/errors.h"
#include "runtime/core/log.h"

namespace tidemark {
namespace {

bool is_at(int file, const std::string& path) {
  struct stat opened {};
  struct stat named {};
  return fstat(file, &opened) == 0 && stat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

// The holder writes its process id into the lock file. Empty if it has not yet.
std::string holder_in(int file) {
  std::array<char, 20> text{};
  const ssize_t read = pread(file, text.data(), text.size(), 0);
  const std::string_view whole(text.data(), read > 0 ? static_cast<size_t>(read) : 0);
  const std::string_view digits = whole.substr(0, whole.find_first_not_of("0123456789"));
  return digits.empty() ? "" : " (process " + std::string(digits) + ")";
}

}  // namespace

FileLock::FileLock(const std::string& path)
    : lock_path_(regular_target(path) + ".lock"), owner_(getpid()) {
  const auto fail = [&](const std::string& what) {
    const int error = errno;
    if (file_ >= 0) close(file_);
    throw DataError(path, 0, what + ": " + std::strerror(error));
  };
  while (true) {
    file_ = open(lock_path_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (file_ < 0) fail("cannot be locked, as " + lock_path_ + " cannot be opened");
    int result = 0;
    do {
      result = flock(file_, LOCK_EX | LOCK_NB);
    } while (result != 0 && errno == EINTR);
    if (result != 0 && errno == EWOULDBLOCK) {
      const std::string holder = holder_in(file_);
      close(file_);
      throw DataError(path, 0, "is in use by another run" + holder);
    }
    if (result != 0 && (errno == ENOLCK || errno == EOPNOTSUPP || errno == ENOSYS)) {
      log().warn("{}: no locks on this file system; two runs that save to it are not noticed",
                 path);
      return;
    }
    if (result != 0) fail("cannot be locked");
    if (is_at(file_, lock_path_)) break;
    // Its last holder removed the file after it was opened here.
    close(file_);
  }
  const std::string holder = std::to_string(owner_) + "\n";
  // The process id is for messages only: the lock holds without it, as on a full disk.
  if (ftruncate(file_, 0) != 0 || pwrite(file_, holder.data(), holder.size(), 0) < 0) {
    log().warn("{}: cannot be written: {}", lock_path_, std::strerror(errno));
  }
}

FileLock::~FileLock() {
  // Removed while it is held, so that nobody else's is.
  if (owner_ == getpid() && is_at(file_, lock_path_)) unlink(lock_path_.c_str());
  close(file_);
}

}  // namespace tidemark
