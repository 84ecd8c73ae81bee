#include "tests/models/data/files.h"

#include <cstdio>
#include <cstdlib>

#include <jpeglib.h>
#include <png.h>
#include <zlib.h>

namespace tidemark::testing {

ByteVector gzip(const ByteVector& bytes) {
  z_stream z{};
  deflateInit2(&z, Z_BEST_COMPRESSION, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  ByteVector out(deflateBound(&z, bytes.size()) + 64);
  z.next_in = const_cast<uint8_t*>(bytes.data());
  z.avail_in = static_cast<uInt>(bytes.size());
  z.next_out = out.data();
  z.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

Image picture(int64_t height, int64_t width, int64_t channels) {
  Image image{height, width, channels, {}};
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t up = c % 2 == 0 ? y : height - y, across = c < 2 ? x : width - x;
        image.pixels.push_back(static_cast<uint8_t>(120 * up / height + 120 * across / width));
      }
    }
  }
  return image;
}

ByteVector jpeg_file(const Image& image, JpegKind kind) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &memory, &size);
  info.image_height = static_cast<JDIMENSION>(image.height);
  info.image_width = static_cast<JDIMENSION>(image.width);
  info.input_components = static_cast<int>(image.channels);
  info.in_color_space = kind == JpegKind::kGrey        ? JCS_GRAYSCALE
                        : kind == JpegKind::kAdobeCmyk ? JCS_CMYK
                                                       : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 98, TRUE);
  if (kind == JpegKind::kProgressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    auto* row = const_cast<uint8_t*>(
        &image.pixels[static_cast<size_t>(info.next_scanline * image.width * image.channels)]);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  ByteVector out(memory, memory + size);
  std::free(memory);
  return out;
}

ByteVector png_file(int64_t height, int64_t width, const PngKind& kind,
                    const std::vector<ByteVector>& rows) {
  ByteVector out;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &out,
      [](png_structp p, png_bytep data, size_t n) {
        auto* bytes = static_cast<ByteVector*>(png_get_io_ptr(p));
        bytes->insert(bytes->end(), data, data + n);
      },
      nullptr);
  png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height),
               kind.depth, kind.colour_type,
               kind.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (kind.colour_type == PNG_COLOR_TYPE_PALETTE) {
    std::vector<png_color> palette;
    for (int i = 0; i < 1 << kind.depth; ++i) {
      palette.push_back({static_cast<png_byte>(i), static_cast<png_byte>(2 * i),
                         static_cast<png_byte>(3 * i)});
    }
    png_set_PLTE(png, info, palette.data(), static_cast<int>(palette.size()));
    const png_byte alpha[2] = {0, 128};
    if (kind.transparent) png_set_tRNS(png, info, alpha, 2, nullptr);
  }
  png_write_info(png, info);
  std::vector<png_bytep> pointers;
  for (const ByteVector& row : rows) pointers.push_back(const_cast<png_bytep>(row.data()));
  png_write_image(png, pointers.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return out;
}

ByteVector png_file(const Image& image) {
  std::vector<ByteVector> rows;
  const auto stride = image.width * image.channels;
  for (int64_t y = 0; y < image.height; ++y) {
    rows.emplace_back(image.pixels.begin() + y * stride,
                      image.pixels.begin() + (y + 1) * stride);
  }
  const int type = image.channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB;
  return png_file(image.height, image.width, {type, 8}, rows);
}

}  // namespace tidemark::testing
