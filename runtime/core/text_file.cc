#include "runtime/core/text_file.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "runtime/core/atomic_file.h"
#include "runtime/core/errors.h"

namespace tidemark {

std::string read_text_file(const std::string& path, Bytes limit) {
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown)) throw DataError(path, "is a folder");
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) throw DataError(path, std::string("cannot be read: ") + std::strerror(errno));
  std::string text;
  std::array<char, 1 << 16> part{};
  do {
    file.read(part.data(), part.size());
    text.append(part.data(), static_cast<size_t>(file.gcount()));
    if (static_cast<int64_t>(text.size()) > limit.count()) {
      throw DataError(path, "is longer than " + format_bytes(limit));
    }
  } while (file);
  if (!file.eof()) throw DataError(path, "cannot be read");
  return text;
}

void write_text_file(const std::string& path, std::string_view text) {
  AtomicFile file(path, AtomicFile::Streams::kWritten);
  file.write(text);
  file.commit();
}

}  // namespace tidemark
