#include "models/checkpoint/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "runtime/core/errors.h"

namespace tidemark {

std::string regular_target(const std::string& path) {
  namespace fs = std::filesystem;
  const auto fail = [&](const std::string& what) { throw DataError(path, 0, what); };
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
  constexpr int kMaxLinks = 40;  // as in the kernel
  fs::path target = path;
  for (int i = 0; i < kMaxLinks && fs::is_symlink(target, error); ++i) {
    target = target.parent_path() / fs::read_symlink(target, error);
    if (error) fail("cannot be written: " + error.message());
  }
  // Links under /proc may name a file that has no path any more.
  if (fs::exists(status) && !fs::equivalent(path, target, error)) {
    fail("is a link that cannot be followed");
  }
  return target.string();
}

AtomicFile::AtomicFile(const std::string& path)
    : path_(path), target_(regular_target(path)), partial_(target_ + ".partial") {
  unlink(partial_.c_str());  // what a crash has left
  file_ = open(partial_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file_ < 0) fail("cannot be written");
}

AtomicFile::~AtomicFile() {
  if (file_ < 0) return;
  close(file_);
  unlink(partial_.c_str());
}

void AtomicFile::fail(const std::string& what) const {
  throw DataError(path_, size_, what + ": " + std::strerror(errno));
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("cannot be written");
    size_ += written;
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

void AtomicFile::overwrite(int64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(file_, bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("cannot be written");
    offset += written;
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

void AtomicFile::commit() {
  if (fsync(file_) != 0) fail("cannot be written");
  const int file = file_;
  if (rename(partial_.c_str(), target_.c_str()) != 0) fail("cannot be renamed from .partial");
  file_ = -1;
  close(file);
  // The new name is on the disk only once the folder is.
  std::filesystem::path folder = std::filesystem::path(target_).parent_path();
  if (folder.empty()) folder = ".";
  const int directory = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) fail("its folder cannot be opened");
  const int result = fsync(directory);
  close(directory);
  // Some file systems cannot flush folders, and say so.
  if (result != 0 && errno != EINVAL && errno != ENOTSUP) fail("its folder cannot be flushed");
}

}  // namespace tidemark
