#include "runtime/core/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "runtime/core/errors.h"

namespace tidemark {

namespace fs = std::filesystem;

std::string follow_links(const std::string& path) {
  constexpr int kMaxLinks = 40;  // the kernel's limit
  std::error_code error;
  fs::path target = path;
  for (int i = 0; i < kMaxLinks && fs::is_symlink(target, error); ++i) {
    const fs::path next = fs::read_symlink(target, error);
    if (error) break;
    target = target.parent_path() / next;  // `next` alone if it is absolute
  }
  return target.string();
}

bool is_stream(const std::string& path) {
  std::error_code unknown;
  const fs::file_status status = fs::status(path, unknown);
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

std::string regular_target(const std::string& path) {
  const auto fail = [&](const std::string& what) { throw DataError(path, what); };
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  switch (status.type()) {
    case fs::file_type::regular:
    case fs::file_type::not_found: break;
    case fs::file_type::directory: fail("is a folder, not a file"); break;
    case fs::file_type::block:
    case fs::file_type::character: fail("is a device; give the path of a file"); break;
    case fs::file_type::fifo: fail("is a pipe; give the path of a file"); break;
    case fs::file_type::socket: fail("is a socket; give the path of a file"); break;
    default: fail("cannot be written: " + error.message());
  }
  std::string target = follow_links(path);
  // A link under /proc may name a file that no longer has a path.
  if (fs::exists(status) && !fs::equivalent(path, target, error)) {
    fail("is a link that cannot be followed");
  }
  return target;
}

namespace {

// Partial files being written. A signal handler reads them, which only lock-free atomics allow.
std::atomic<const char*> partial_files[8];
static_assert(std::atomic<const char*>::is_always_lock_free);

std::atomic<const char*>* claim_slot(const char* path) {
  for (std::atomic<const char*>& slot : partial_files) {
    const char* none = nullptr;
    if (slot.compare_exchange_strong(none, path)) return &slot;
  }
  return nullptr;
}

}  // namespace

bool is_at(int file, const std::string& path) {
  struct stat opened {};
  struct stat named {};
  return fstat(file, &opened) == 0 && stat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

void check_writable(const std::string& path) {
  if (!is_stream(path)) {
    const AtomicFile probe(path);
    return;
  }
  // The file is not opened: the reader of a pipe would take the close for the end of its input.
  std::error_code unknown;
  if (fs::is_socket(path, unknown)) throw DataError(path, "is a socket");
  if (access(path.c_str(), W_OK) != 0) {
    throw DataError(path, std::string("cannot be written: ") + std::strerror(errno));
  }
}

void remove_partial_files() {
  for (const std::atomic<const char*>& slot : partial_files) {
    if (const char* const path = slot.load()) unlink(path);
  }
}

AtomicFile::AtomicFile(const std::string& path, Streams streams)
    : AtomicFile(path, streams == Streams::kWritten && is_stream(path)) {}

AtomicFile::AtomicFile(const std::string& path, bool stream)
    : path_(path),
      target_(stream ? path : regular_target(path)),
      partial_(stream ? "" : target_ + kPartialSuffix) {
  if (partial_.empty()) {
    file_ = open(target_.c_str(), O_WRONLY | O_CLOEXEC);
    if (file_ < 0) fail("cannot be written");
    return;
  }
  do {
    if (file_ >= 0) close(file_);
    // O_NONBLOCK: opening a pipe of that name must not block.
    constexpr int kFlags = O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    file_ = open(partial_.c_str(), kFlags, 0666);
    if (file_ < 0) fail("cannot be written");
    // Some network file systems have no locks; a single writer is safe without one.
    while (flock(file_, LOCK_EX) != 0 && errno == EINTR) {
    }
    // The previous holder of the lock has renamed or removed the file opened here.
  } while (!is_at(file_, partial_));
  if (ftruncate(file_, 0) != 0) {  // left by a crash
    const int error = errno;
    close(std::exchange(file_, -1));
    errno = error;
    fail("cannot be written");
  }
  struct stat before {};
  if (stat(target_.c_str(), &before) == 0) fchmod(file_, before.st_mode & 07777);
  slot_ = claim_slot(partial_.c_str());
}

AtomicFile::~AtomicFile() {
  if (slot_) slot_->store(nullptr);
  if (file_ < 0) return;
  if (!partial_.empty()) unlink(partial_.c_str());
  close(file_);
}

void AtomicFile::fail(const std::string& what, int64_t offset) const {
  throw DataError(path_, offset, what + ": " + std::strerror(errno));
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("cannot be written", size_);
    size_ += written;
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

void AtomicFile::overwrite(int64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(file_, bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("cannot be written", offset);
    offset += written;
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

void AtomicFile::commit() {
  if (partial_.empty()) {
    if (close(std::exchange(file_, -1)) != 0) fail("cannot be written");
    return;
  }
  if (fsync(file_) != 0) fail("cannot be written");
  // After the rename another writer may create a partial file of the same name.
  if (slot_) std::exchange(slot_, nullptr)->store(nullptr);
  const int file = file_;
  if (rename(partial_.c_str(), target_.c_str()) != 0)
    fail("cannot be renamed from its partial file");
  file_ = -1;
  close(file);
  // The new name is durable only once its folder is flushed.
  fs::path folder = fs::path(target_).parent_path();
  if (folder.empty()) folder = ".";
  const int directory = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) fail("its folder cannot be opened");
  const int result = fsync(directory);
  close(directory);
  // Some file systems cannot flush folders and report one of these errors.
  if (result != 0 && errno != EINVAL && errno != ENOTSUP) fail("its folder cannot be flushed");
}

}  // namespace tidemark
