#include "models/data/image.h"

#include <array>

#include "runtime/core/errors.h"

namespace tidemark {
namespace {

enum class Format { kJpeg, kPng };

Format sniff(InputFile& file) {
  std::array<uint8_t, 4> magic{};
  const size_t n = file.read(magic);
  file.seek(0);
  if (n >= 2 && magic[0] == 0xff && magic[1] == 0xd8) return Format::kJpeg;
  if (n == 4 && magic == std::array<uint8_t, 4>{0x89, 'P', 'N', 'G'}) return Format::kPng;
  file.fail(file.size() == 0 ? "empty file" : "neither a JPEG nor a PNG file");
}

}  // namespace

ImageInfo check_image(const std::string& path, int64_t max_pixels) {
  InputFile file(path);
  return sniff(file) == Format::kJpeg ? detail::check_jpeg(file, max_pixels)
                                      : detail::check_png(file, max_pixels);
}

Image decode_image(const std::string& path, int64_t max_pixels) {
  InputFile file(path);
  return sniff(file) == Format::kJpeg ? detail::decode_jpeg(file, max_pixels)
                                      : detail::decode_png(file, max_pixels);
}

void detail::check_pixels(const InputFile& file, int64_t height, int64_t width,
                          int64_t max_pixels) {
  if (height <= 0 || width <= 0) file.fail("the image has no pixels");
  if (height > max_pixels / width) {
    file.fail(std::to_string(width) + " x " + std::to_string(height) +
              " pixels are more than " + std::to_string(max_pixels));
  }
}

}  // namespace tidemark
