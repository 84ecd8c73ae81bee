#include "runtime/core/text_file.h"

#include <zlib.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "runtime/core/atomic_file.h"
#include "runtime/core/errors.h"

namespace tidemark {

std::string read_text_file(const std::string& path, Bytes limit) {
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown)) throw DataError(path, "is a folder");
  // zlib also reads files that are not compressed.
  errno = 0;
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), &gzclose);
  if (!file) {
    throw DataError(
        path, std::string("cannot be read: ") + std::strerror(errno != 0 ? errno : ENOMEM));
  }
  std::string text;
  std::array<char, 1 << 16> part{};
  int got = 0;
  do {
    got = gzread(file.get(), part.data(), static_cast<unsigned>(part.size()));
    if (got > 0) text.append(part.data(), static_cast<size_t>(got));
    if (static_cast<int64_t>(text.size()) > limit.count()) {
      throw DataError(path, "is longer than " + format_bytes(limit));
    }
  } while (got == static_cast<int>(part.size()));
  int error = Z_OK;
  std::string message = gzerror(file.get(), &error);
  if (error == Z_ERRNO) message = std::strerror(errno);
  // zlib begins its messages with the path.
  if (message.starts_with(path + ": ")) message.erase(0, path.size() + 2);
  if (got < 0 || (error != Z_OK && error != Z_STREAM_END)) {
    throw DataError(path, static_cast<int64_t>(text.size()),
                    error == Z_BUF_ERROR ? "is truncated" : message);
  }
  if (path.ends_with(".gz") && gzdirect(file.get()) != 0 && !text.empty()) {
    throw DataError(path, "is named .gz but is not compressed");
  }
  return text;
}

void write_text_file(const std::string& path, std::string_view text) {
  AtomicFile file(path, AtomicFile::Streams::kWritten);
  file.write(text);
  file.commit();
}

}  // namespace tidemark
