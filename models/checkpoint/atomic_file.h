// A file that replaces another one at once or not at all.
//
// Written beside its place as "<path>.partial", flushed to the disk, then renamed: whoever
// opens `path`, after a crash at any moment, finds the old file or the new one, whole. What a
// crash leaves of the partial file is overwritten by the next attempt.
//
// Threads: one at a time. Two writers of one path at the same time are not provided for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace tidemark {

class AtomicFile {
 public:
  // Throws DataError if the folder is missing or cannot be written, or `path` is one.
  explicit AtomicFile(const std::string& path);
  // Without commit(): removes what was written; the old file stays.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Both throw DataError naming the offset, as on a full disk.
  void write(std::span<const std::byte> bytes);
  // Over what has been written already. REQUIRES: offset + bytes.size() <= size().
  void overwrite(int64_t offset, std::span<const std::byte> bytes);
  int64_t size() const { return size_; }

  // Throws DataError; then the old file is still there.
  void commit();

 private:
  [[noreturn]] void fail(const std::string& what) const;

  std::string path_;
  std::string partial_;
  int file_ = -1;
  int64_t size_ = 0;
};

}  // namespace tidemark
