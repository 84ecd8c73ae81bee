// A file that replaces another one at once or not at all.
//
// Written beside its place under a name with kPartialSuffix, flushed to the disk, then renamed:
// whoever opens `path`, after a crash at any moment, finds the old file or the new one, whole.
// What a crash leaves of the partial file is removed by the next attempt. A second writer, in
// this process or another, waits until the first is done, so the last one wins. A symbolic link
// stays: the file that it names is replaced, in that file's folder. So do the permissions.
//
// Threads: one at a time. A thread that opens one path twice waits for itself for ever.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tidemark {

// Where `path` leads once its last component is no symbolic link; the last link may dangle. Of
// links in a circle: one of them.
std::string follow_links(const std::string& path);

// Whether `path` leads to a device, a pipe or a socket: these are written to, not replaced.
bool is_stream(const std::string& path);

// follow_links() for a file that is to be replaced. Throws DataError if something else than a
// regular file is there, a folder or a stream, or if the links cannot be followed.
std::string regular_target(const std::string& path);

// No name that a user would choose.
inline constexpr const char* kPartialSuffix = ".tidemark.partial";

// Is the open file still the one of that name?
bool is_at(int file, const std::string& path);

class AtomicFile {
 public:
  // Of devices, pipes and sockets: refused, or written to as they are, which cannot be undone.
  enum class Streams : uint8_t { kRefused, kWritten };
  // Throws DataError if the folder is missing or cannot be written, or as regular_target().
  // Opening a pipe waits until somebody reads it.
  explicit AtomicFile(const std::string& path, Streams streams = Streams::kRefused);
  // Without commit(): removes what was written; the old file stays.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Both throw DataError naming the offset, as on a full disk.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  // Over what has been written already. REQUIRES: offset + bytes.size() <= size(), no stream.
  void overwrite(int64_t offset, std::span<const std::byte> bytes);
  int64_t size() const { return size_; }

  // Throws DataError; then the old file is still there.
  void commit();

 private:
  AtomicFile(const std::string& path, bool stream);
  [[noreturn]] void fail(const std::string& what, int64_t offset = -1) const;

  // Null where eight files are being written already.
  std::atomic<const char*>* slot_ = nullptr;
  const std::string path_;     // as given, for messages
  const std::string target_;   // the file that is replaced
  const std::string partial_;  // empty: a stream
  int file_ = -1;
  int64_t size_ = 0;
};

// Throws DataError unless AtomicFile could write there, streams too; changes nothing.
void check_writable(const std::string& path);

// Removes all partial files that are being written, for a signal handler that ends the process;
// one that is being opened at that moment may stay, empty.
// Safe in one (signal-safety(7)).
void remove_partial_files();

}  // namespace tidemark
