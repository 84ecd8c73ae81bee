// A file that replaces another one at once or not at all.
//
// Written beside its place as "<path>.partial", flushed to the disk, then renamed: whoever
// opens `path`, after a crash at any moment, finds the old file or the new one, whole. What a
// crash leaves of the partial file is removed by the next attempt. A symbolic link stays: the
// file that it names is replaced, in that file's folder.
//
// Threads: one at a time. Two writers of one path at the same time are not provided for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace tidemark {

// Where a file at `path` lies once symbolic links are followed; the last link may dangle.
// Throws DataError if something else than a regular file is there: a folder, device, pipe or
// socket.
std::string regular_target(const std::string& path);

class AtomicFile {
 public:
  // Throws DataError if the folder is missing or cannot be written, or as regular_target().
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

  const std::string path_;    // as given, for messages
  const std::string target_;  // the file that is replaced
  const std::string partial_;
  int file_ = -1;
  int64_t size_ = 0;
};

}  // namespace tidemark
