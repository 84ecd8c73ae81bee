// A text file read in lines or in blocks, from any place, in bounded memory: 64 KiB beside the
// line or block itself. A file compressed by gzip is unpacked into memory as a whole, because
// it cannot be read from any place otherwise.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/input_file.h"
#include "runtime/core/units.h"

namespace tidemark {

class LineFile {
 public:
  // Throws DataError if the file cannot be read, or is compressed and damaged or longer than
  // `unpack_limit`.
  LineFile(const std::string& path, Bytes longest_line, Bytes unpack_limit);

  const std::string& path() const { return path_; }
  // Of the next line or block, in the unpacked text.
  int64_t position() const { return position_; }
  void seek(int64_t position);
  int64_t size() const;  // of the unpacked text

  // Reads a line without the "\n" that ends it, and without the mark U+FEFF that begins some
  // files; false at the end. Throws DataError for a line longer than `longest_line`.
  bool next(std::string& line);
  // Reads about `size` bytes up to the end of a line, or of a character in lines that are
  // longer; false at the end.
  bool next_block(std::string& block, size_t size);

  // Throws a DataError about what was read from `start`, with the number of its line. `within`:
  // bytes from there to the fault.
  [[noreturn]] void fail(int64_t start, const std::string& what, size_t within = 0);

  // Host memory: of the buffer, or of the unpacked text.
  Bytes bytes() const;

 private:
  // What is at hand from position() on; empty at the end of the file.
  std::string_view peek();
  void skip_mark();

  std::string path_;
  size_t longest_line_;
  bool is_unpacked_ = false;
  std::optional<InputFile> file_;  // nothing if unpacked
  std::vector<uint8_t> buffer_;    // bytes of the text from buffer_begin_ on; all if unpacked
  size_t filled_ = 0;
  int64_t buffer_begin_ = 0;
  int64_t position_ = 0;
};

}  // namespace tidemark
