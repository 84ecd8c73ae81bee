#include <png.h>

#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstring>

#include "models/data/image.h"
#include "runtime/core/errors.h"

namespace tidemark::detail {
namespace {

struct Errors {
  std::jmp_buf jump;
  std::array<char, 256> message;
};

[[noreturn]] void on_error(png_structp png, png_const_charp message) {
  auto* errors = static_cast<Errors*>(png_get_error_ptr(png));
  std::snprintf(errors->message.data(), errors->message.size(), "%s", message);
  std::longjmp(errors->jump, 1);
}

// Warnings are about malformed ancillary chunks; anything that affects pixels is an error.
void on_warning(png_structp, png_const_charp) {}

void on_read(png_structp png, png_bytep out, size_t count) {
  auto* file = static_cast<InputFile*>(png_get_io_ptr(png));
  if (file->read({out, count}) < count) png_error(png, "the file ends too early");
}

class Decoder {
 public:
  explicit Decoder(InputFile& file) : file_(file) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &errors_, on_error, on_warning);
    if (png_ == nullptr) file.fail("libpng cannot be initialised");
    guarded([this] {
      info_ = png_create_info_struct(png_);
      if (info_ == nullptr) png_error(png_, "out of memory");
      png_set_read_fn(png_, &file_, on_read);
      png_set_user_limits(png_, 0x7fffffff, 0x7fffffff);  // check_pixels() decides
      png_read_info(png_, info_);
    });
  }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  ~Decoder() { png_destroy_read_struct(&png_, &info_, nullptr); }

  png_structp png() { return png_; }
  png_infop info() { return info_; }

  // Runs libpng calls; turns an error into DataError. REQUIRES: body has no locals with
  // destructors.
  template <class Body>
  void guarded(const Body& body) {
    if (setjmp(errors_.jump) != 0) {
      const DataError error(file_.path(), file_.position(),
                            std::string("bad PNG: ") + errors_.message.data());
      png_destroy_read_struct(&png_, &info_, nullptr);
      throw error;
    }
    body();
  }

 private:
  InputFile& file_;
  Errors errors_{};
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

// Walks the chunks by their declared lengths, without reading checksums or data.
void check_chunks(InputFile& file) {
  constexpr int64_t kSignature = 8, kAround = 12;  // length, type and checksum of a chunk
  int64_t at = kSignature;
  while (true) {
    std::array<uint8_t, 8> head{};
    if (at + kAround > file.size()) {
      throw DataError(file.path(), file.size(), "truncated PNG: no IEND chunk");
    }
    file.seek(at);
    file.read_exact(head);
    const int64_t length = int64_t{head[0]} << 24 | head[1] << 16 | head[2] << 8 | head[3];
    if (at + kAround + length > file.size()) {
      throw DataError(file.path(), at,
                      "truncated PNG: a chunk of " + std::to_string(length) +
                          " bytes reaches past the end of the file");
    }
    if (std::memcmp(&head[4], "IEND", 4) == 0) return;
    at += kAround + length;
  }
}

}  // namespace

ImageInfo check_png(InputFile& file, int64_t max_pixels) {
  ImageInfo result;
  {
    Decoder decoder(file);
    result.height = png_get_image_height(decoder.png(), decoder.info());
    result.width = png_get_image_width(decoder.png(), decoder.info());
    check_pixels(file, result.height, result.width, max_pixels);
    // The result, its row pointers, libpng's two rows (up to 8 bytes a pixel) and zlib's
    // window.
    result.decode_bytes =
        Bytes(result.height * (result.width * 3 + 8) + 32 * result.width + (1 << 18));
  }
  check_chunks(file);
  return result;
}

Image decode_png(InputFile& file, int64_t max_pixels) {
  Decoder decoder(file);
  png_structp png = decoder.png();
  png_infop info = decoder.info();
  Image image{png_get_image_height(png, info), png_get_image_width(png, info), 0, {}};
  check_pixels(file, image.height, image.width, max_pixels);
  decoder.guarded([png, info] {
    png_set_expand(png);  // palettes to RGB, 1, 2 and 4 bits to 8
    png_set_scale_16(png);
    png_set_strip_alpha(png);
    png_set_interlace_handling(png);
    png_read_update_info(png, info);
  });
  image.channels = png_get_channels(png, info);
  const auto stride = static_cast<size_t>(image.width * image.channels);
  if ((image.channels != 1 && image.channels != 3) || png_get_rowbytes(png, info) != stride) {
    file.fail("bad PNG: unknown pixel format");
  }
  image.pixels.resize(static_cast<size_t>(image.height) * stride);
  std::vector<png_bytep> rows(static_cast<size_t>(image.height));
  for (size_t y = 0; y < rows.size(); ++y) rows[y] = image.pixels.data() + y * stride;
  png_bytepp row_pointers = rows.data();
  decoder.guarded([png, row_pointers] {
    png_read_image(png, row_pointers);
    png_read_end(png, nullptr);
  });
  return image;
}

}  // namespace tidemark::detail
