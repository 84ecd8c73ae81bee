#include "models/checkpoint/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "runtime/core/errors.h"

namespace tidemark {

AtomicFile::AtomicFile(const std::string& path) : path_(path), partial_(path + ".partial") {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) throw DataError(path, 0, "is a folder");
  file_ = open(partial_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
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
  if (rename(partial_.c_str(), path_.c_str()) != 0) fail("cannot be renamed from .partial");
  file_ = -1;
  close(file);
  // The new name is on the disk only once the folder is.
  std::filesystem::path folder = std::filesystem::path(path_).parent_path();
  if (folder.empty()) folder = ".";
  const int directory = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) fail("its folder cannot be opened");
  const int result = fsync(directory);
  close(directory);
  // Some file systems cannot flush folders, and say so.
  if (result != 0 && errno != EINVAL && errno != ENOTSUP) fail("its folder cannot be flushed");
}

}  // namespace tidemark
