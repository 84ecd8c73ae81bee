// JPEG and PNG files, read through libjpeg and libpng.
//
// Any file either yields an image or throws DataError with the offset that the library had
// reached; neither library can end the process. Threads: free functions without shared state.
#pragma once

#include <cstdint>
#include <string>

#include "models/data/resample.h"
#include "runtime/core/input_file.h"
#include "runtime/core/units.h"

namespace tidemark {

struct ImageInfo {
  int64_t height = 0, width = 0;
  Bytes decode_bytes;  // upper bound on decode_image()'s allocations, including its result
};

// Reads the header, and checks that the file has an end marker (JPEG's EOI, PNG's IEND): this
// finds a truncated file without decoding it. Throws DataError for more than `max_pixels`.
ImageInfo check_image(const std::string& path, int64_t max_pixels);

// One channel for grey files, else 3 (RGB). Palettes are expanded, 16-bit values reduced to 8
// bits, alpha is dropped, and CMYK is converted without a colour profile.
Image decode_image(const std::string& path, int64_t max_pixels);

namespace detail {
// REQUIRES (all four functions): `file` is at position 0.
ImageInfo check_jpeg(InputFile& file, int64_t max_pixels);
Image decode_jpeg(InputFile& file, int64_t max_pixels);
ImageInfo check_png(InputFile& file, int64_t max_pixels);
Image decode_png(InputFile& file, int64_t max_pixels);
void check_pixels(const InputFile& file, int64_t height, int64_t width, int64_t max_pixels);
}  // namespace detail

}  // namespace tidemark
