// Small files in each format, made by the tests themselves, and what to expect of damaged ones.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "models/data/resample.h"
#include "runtime/core/errors.h"

namespace tidemark::testing {

using ByteVector = std::vector<uint8_t>;

// A folder that goes away with the test.
class TempFolder {
 public:
  TempFolder() {
    std::string name =
        (std::filesystem::temp_directory_path() / "tidemark-data-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string path() const { return path_.string(); }
  // Writes a file, making its folders; returns its path.
  std::string write(const std::string& name, const ByteVector& bytes) const {
    const auto file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::filesystem::remove(file);  // truncating instead makes some file systems flush
    std::ofstream(file, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    return file.string();
  }

 private:
  std::filesystem::path path_;
};

inline ByteVector read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return ByteVector(std::istreambuf_iterator<char>(file), {});
}

inline ByteVector first(const ByteVector& bytes, size_t n) {
  return ByteVector(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n));
}

// Runs `open`, which must throw DataError about `file`; returns the offset.
inline int64_t data_error(const std::function<void()>& open, const std::string& file) {
  try {
    open();
  } catch (const DataError& error) {
    EXPECT_EQ(error.file(), file) << error.what();
    EXPECT_GE(error.offset(), -1) << error.what();
    return error.offset();
  }
  ADD_FAILURE() << "no DataError about " << file;
  return -1;
}

ByteVector gzip(const ByteVector& bytes);

// A smooth picture with a different gradient in each channel.
Image picture(int64_t height, int64_t width, int64_t channels);

enum class JpegKind { kGrey, kColour, kProgressive, kAdobeCmyk };
ByteVector jpeg_file(const Image& image, JpegKind kind);  // CMYK: of 4-channel images

struct PngKind {
  int colour_type;  // PNG_COLOR_TYPE_*
  int depth;
  bool interlaced = false;
  bool transparent = false;  // a tRNS chunk; palettes only
};
// Rows as PNG stores them. Palette entry i is (i, 2 i, 3 i).
ByteVector png_file(int64_t height, int64_t width, const PngKind& kind,
                    const std::vector<ByteVector>& rows);
ByteVector png_file(const Image& image);  // 8-bit grey or RGB

}  // namespace tidemark::testing
