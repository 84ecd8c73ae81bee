#include "runtime/core/text_file.h"

#include <array>
#include <filesystem>
#include <fstream>

#include "runtime/core/atomic_file.h"
#include "runtime/core/errors.h"
#include "runtime/core/input_file.h"

namespace tidemark {
namespace {

// From a pipe or a device, whose length is not known before.
std::string read_stream(const std::string& path, Bytes limit) {
  std::ifstream stream(path, std::ios::binary);
  std::string text;
  std::array<char, 1 << 16> part{};
  while (stream.read(part.data(), part.size()) || stream.gcount() > 0) {
    text.append(part.data(), static_cast<size_t>(stream.gcount()));
    if (static_cast<int64_t>(text.size()) > limit.count()) {
      throw DataError(path, "is longer than " + format_bytes(limit));
    }
  }
  if (!stream.eof()) throw DataError(path, "cannot be read");
  return text;
}

}  // namespace

std::string read_text_file(const std::string& path, Bytes limit) {
  std::error_code unknown;
  const std::filesystem::file_status status = std::filesystem::status(path, unknown);
  if (std::filesystem::is_directory(status)) throw DataError(path, "is a folder");
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    return read_stream(path, limit);
  }
  const FileContent content = read_whole_file(path, limit.count());
  if (path.ends_with(".gz") && !content.unpacked && !content.bytes.empty()) {
    throw DataError(path, "is named .gz but is not compressed");
  }
  return {content.bytes.begin(), content.bytes.end()};
}

void write_text_file(const std::string& path, std::string_view text) {
  AtomicFile file(path, AtomicFile::Streams::kWritten);
  file.write(text);
  file.commit();
}

}  // namespace tidemark
