// JPEG and PNG files, read through libjpeg and libpng.
//
// Any file either gives an image or throws DataError with the offset that the library had
// reached; neither library can end the process. Threads: free functions without shared state.
#pragma once

#include <cstdint>
#include <string>

#include "models/data/file.h"
#include "models/data/resample.h"
#include "runtime/core/units.h"

namespace tidemark {

struct ImageInfo {
  int64_t height = 0, width = 0;
  Bytes decode_bytes;  // a bound on what decode_image() allocates, its result included
};

// Reads the header, and checks that the file has an end (JPEG's EOI, PNG's IEND): a truncated
// file is found without decoding it. More than `max_pixels` is an error.
ImageInfo check_image(const std::string& path, int64_t max_pixels);

// 1 channel for grey files, else 3 (RGB): palettes expanded, 16 bits brought to 8, alpha
// dropped, CMYK converted without a colour profile.
Image decode_image(const std::string& path, int64_t max_pixels);

namespace detail {
// REQUIRES of all four: `file` is at position 0.
ImageInfo check_jpeg(InputFile& file, int64_t max_pixels);
Image decode_jpeg(InputFile& file, int64_t max_pixels);
ImageInfo check_png(InputFile& file, int64_t max_pixels);
Image decode_png(InputFile& file, int64_t max_pixels);
void check_pixels(const InputFile& file, int64_t height, int64_t width, int64_t max_pixels);
}  // namespace detail

}  // namespace tidemark
