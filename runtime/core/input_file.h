// Files read with a known position, so that every error message can state it.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tidemark {

// One open file; used by one thread at a time.
class InputFile {
 public:
  explicit InputFile(const std::string& path);  // throws DataError if it cannot be opened

  const std::string& path() const { return path_; }
  int64_t size() const { return size_; }
  int64_t position() const { return position_; }

  // Reads up to out.size() bytes; fewer only at the end of the file or on an I/O error. Does
  // not throw, because C libraries call it.
  size_t read(std::span<uint8_t> out) noexcept;
  void read_exact(std::span<uint8_t> out);  // throws DataError at the file's end
  bool seek(int64_t position) noexcept;     // false, without moving, outside [0, size()]
  [[noreturn]] void fail(const std::string& what) const;  // DataError at position()

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
  int64_t size_ = 0;
  int64_t position_ = 0;
};

// The content of a whole file, decompressed if it is gzip (detected by its magic number, not
// its name). Throws DataError if the file is missing, damaged, or longer than `limit` bytes.
struct FileContent {
  std::vector<uint8_t> bytes;
  bool unpacked = false;
};
FileContent read_whole_file(const std::string& path, int64_t limit);

}  // namespace tidemark
