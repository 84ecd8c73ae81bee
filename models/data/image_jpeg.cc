// jpeglib.h needs FILE declared before it.
#include <csetjmp>
#include <cstdio>

#include <jpeglib.h>

#include <jerror.h>

#include <algorithm>
#include <array>

#include "models/data/image.h"
#include "runtime/core/errors.h"

namespace tidemark::detail {
namespace {

// libjpeg reports errors through these and expects them not to return. Exceptions must not pass
// through its C frames, hence longjmp, which only skips frames without destructors.
struct Errors {
  jpeg_error_mgr base;  // first: libjpeg hands back a pointer to it
  std::jmp_buf jump;
  std::array<char, JMSG_LENGTH_MAX> message;
};

struct Source {
  jpeg_source_mgr base;  // first, as above
  InputFile* file;
  std::array<uint8_t, 8192> buffer;
};

[[noreturn]] void on_error(j_common_ptr info) {
  auto* errors = reinterpret_cast<Errors*>(info->err);
  errors->base.format_message(info, errors->message.data());
  std::longjmp(errors->jump, 1);
}

// A warning means that pixels were invented. The exceptions are these warnings, which careless
// but harmless writers cause (ImageNet has many).
void on_message(j_common_ptr info, int level) {
  if (level >= 0) return;
  const int code = info->err->msg_code;
  if (code == JWRN_EXTRANEOUS_DATA || code == JWRN_JFIF_MAJOR || code == JWRN_ADOBE_XFORM ||
      code == JWRN_TOO_MUCH_DATA) {
    return;
  }
  on_error(info);
}

void nothing(j_decompress_ptr) {}
void print_nothing(j_common_ptr) {}

boolean fill(j_decompress_ptr info) {
  auto* source = reinterpret_cast<Source*>(info->src);
  const size_t n = source->file->read(source->buffer);
  source->base.next_input_byte = source->buffer.data();
  source->base.bytes_in_buffer = n;
  if (n == 0) ERREXIT(info, JERR_INPUT_EOF);
  return TRUE;
}

void skip(j_decompress_ptr info, long count) {
  auto* source = reinterpret_cast<Source*>(info->src);
  if (count <= 0) return;
  const auto here = source->base.bytes_in_buffer;
  if (static_cast<size_t>(count) <= here) {
    source->base.next_input_byte += count;
    source->base.bytes_in_buffer -= static_cast<size_t>(count);
    return;
  }
  InputFile& file = *source->file;
  source->base.bytes_in_buffer = 0;
  if (!file.seek(file.position() + count - static_cast<long>(here))) {
    file.seek(file.size());
    ERREXIT(info, JERR_INPUT_EOF);
  }
}

class Decoder {
 public:
  explicit Decoder(InputFile& file) {
    info_.err = jpeg_std_error(&errors_.base);
    errors_.base.error_exit = on_error;
    errors_.base.emit_message = on_message;
    errors_.base.output_message = print_nothing;
    source_.file = &file;
    source_.base.init_source = nothing;
    source_.base.fill_input_buffer = fill;
    source_.base.skip_input_data = skip;
    source_.base.resync_to_restart = jpeg_resync_to_restart;
    source_.base.term_source = nothing;
    guarded([this] {
      jpeg_create_decompress(&info_);
      info_.src = &source_.base;
      jpeg_read_header(&info_, TRUE);
    });
  }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  ~Decoder() { jpeg_destroy_decompress(&info_); }

  jpeg_decompress_struct& info() { return info_; }
  int64_t offset() const {
    return source_.file->position() - static_cast<int64_t>(source_.base.bytes_in_buffer);
  }

  // Runs libjpeg calls; turns an error into DataError. REQUIRES: body has no locals with
  // destructors.
  template <class Body>
  void guarded(const Body& body) {
    if (setjmp(errors_.jump) != 0) {
      const DataError error(source_.file->path(), offset(),
                            std::string("bad JPEG: ") + errors_.message.data());
      jpeg_destroy_decompress(&info_);
      throw error;
    }
    body();
  }

 private:
  jpeg_decompress_struct info_{};
  Errors errors_{};
  Source source_{};
};

// Entropy-coded data never contain FF D9, so a file without it after the header is truncated.
// The search goes backwards: FF D9 is nearly always in the last two bytes.
void check_end(InputFile& file, int64_t header_end) {
  std::array<uint8_t, 4096> block;
  int64_t end = file.size();
  while (end - header_end >= 2) {
    const int64_t begin = std::max(header_end, end - static_cast<int64_t>(block.size()));
    const auto bytes = std::span(block).first(static_cast<size_t>(end - begin));
    file.seek(begin);
    file.read_exact(bytes);
    for (size_t i = bytes.size() - 1; i > 0; --i) {
      if (bytes[i] == 0xd9 && bytes[i - 1] == 0xff) return;
    }
    end = begin + (begin > header_end ? 1 : 0);  // the marker may lie across two blocks
  }
  throw DataError(file.path(), file.size(), "truncated JPEG: no end-of-image marker");
}

}  // namespace

ImageInfo check_jpeg(InputFile& file, int64_t max_pixels) {
  ImageInfo result;
  int64_t header_end = 0;
  {
    Decoder decoder(file);
    jpeg_decompress_struct& info = decoder.info();
    result.height = info.image_height;
    result.width = info.image_width;
    check_pixels(file, result.height, result.width, max_pixels);
    // A file with several scans keeps all coefficients, 2 bytes each, in whole blocks of at
    // most 64 x 64.
    const bool several = info.progressive_mode || jpeg_has_multiple_scans(&info);
    const int64_t padded = (result.height + 63) / 64 * 64 * ((result.width + 63) / 64 * 64);
    const int64_t strips = 64 * (result.width + 64) * 16;
    result.decode_bytes = Bytes(result.height * result.width * 3 + strips + (1 << 17) +
                                (several ? padded * 2 * info.num_components : 0));
    header_end = decoder.offset();
  }
  check_end(file, header_end);
  return result;
}

Image decode_jpeg(InputFile& file, int64_t max_pixels) {
  Decoder decoder(file);
  jpeg_decompress_struct& info = decoder.info();
  check_pixels(file, info.image_height, info.image_width, max_pixels);
  const bool cmyk = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
  const bool grey = info.jpeg_color_space == JCS_GRAYSCALE;
  info.out_color_space = cmyk ? JCS_CMYK : grey ? JCS_GRAYSCALE : JCS_RGB;

  Image image{info.image_height, info.image_width, grey ? 1 : 3, {}};
  image.pixels.resize(static_cast<size_t>(image.height * image.width * image.channels));
  std::vector<uint8_t> inks(cmyk ? static_cast<size_t>(image.width) * 4 : 0);
  uint8_t* pixels = image.pixels.data();
  uint8_t* ink_row = inks.data();
  const auto width = static_cast<size_t>(image.width);
  const size_t stride = width * static_cast<size_t>(image.channels);
  decoder.guarded([&info, pixels, ink_row, stride, width, cmyk] {
    jpeg_start_decompress(&info);
    while (info.output_scanline < info.output_height) {
      uint8_t* out = pixels + info.output_scanline * stride;
      JSAMPROW row = cmyk ? ink_row : out;
      jpeg_read_scanlines(&info, &row, 1);
      if (!cmyk) continue;
      // Adobe writes inverted inks: 255 means none.
      const int flip = info.saw_Adobe_marker ? 0 : 255;
      for (size_t x = 0; x < width; ++x) {
        const int black = ink_row[4 * x + 3] ^ flip;
        for (size_t c = 0; c < 3; ++c) {
          out[3 * x + c] = static_cast<uint8_t>((ink_row[4 * x + c] ^ flip) * black / 255);
        }
      }
    }
    jpeg_finish_decompress(&info);
  });
  return image;
}

}  // namespace tidemark::detail
