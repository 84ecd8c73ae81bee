// A file that replaces another atomically or not at all.
//
// The file is written beside `path` under a name with kPartialSuffix, flushed to the disk, then
// renamed. After a crash at any moment, `path` holds the old file or the new one, complete. The
// next attempt removes a partial file left by a crash. A second writer, in this process or
// another, waits until the first is done, so the last one wins. A symbolic link is kept: the
// file it names is replaced, in that file's folder. Permissions are kept too.
//
// Threads: one at a time. A thread that opens one path twice deadlocks.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tidemark {

// The target of `path` after following symbolic links in its last component; the target need
// not exist. For circular links: one of the links.
std::string follow_links(const std::string& path);

// Whether `path` leads to a device, a pipe or a socket, which are written to, not replaced.
bool is_stream(const std::string& path);

// follow_links() for a file to be replaced. Throws DataError if the target exists and is not a
// regular file, such as a folder or a stream, or if the links cannot be followed.
std::string regular_target(const std::string& path);

// A name that no user would choose.
inline constexpr const char* kPartialSuffix = ".tidemark.partial";

// Whether the open file is still the file at `path`.
bool is_at(int file, const std::string& path);

class AtomicFile {
 public:
  // Devices, pipes and sockets: refused, or written to directly, which cannot be undone.
  enum class Streams : uint8_t { kRefused, kWritten };
  // Throws DataError if the folder is missing or not writable, or as regular_target(). Opening
  // a pipe waits for a reader.
  explicit AtomicFile(const std::string& path, Streams streams = Streams::kRefused);
  // Without commit(): removes the partial file; the old file stays.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Both throw DataError, naming the offset, as on a full disk.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  // Overwrites bytes already written. REQUIRES: offset + bytes.size() <= size(), no stream.
  void overwrite(int64_t offset, std::span<const std::byte> bytes);
  int64_t size() const { return size_; }

  // Throws DataError; the old file is then unchanged.
  void commit();

 private:
  AtomicFile(const std::string& path, bool stream);
  [[noreturn]] void fail(const std::string& what, int64_t offset = -1) const;

  // Null if eight files are already being written.
  std::atomic<const char*>* slot_ = nullptr;
  const std::string path_;     // as given, for messages
  const std::string target_;   // the file to be replaced
  const std::string partial_;  // empty: a stream
  int file_ = -1;
  int64_t size_ = 0;
};

// Throws DataError unless AtomicFile could write to `path`, streams included; changes nothing.
void check_writable(const std::string& path);

// Removes all partial files being written, for a signal handler that ends the process; a file
// being opened at that moment may stay, empty. Async-signal-safe (signal-safety(7)).
void remove_partial_files();

}  // namespace tidemark
