#include "runtime/core/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "runtime/core/errors.h"
#include "runtime/core/units.h"

namespace tidemark {

InputFile::InputFile(const std::string& path) : path_(path) {
  // O_NONBLOCK: opening a pipe must not wait for a writer.
  const int file = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file >= 0) file_.reset(fdopen(file, "rb"));
  if (!file_) throw DataError(path, std::string("cannot be read: ") + std::strerror(errno));
  struct stat status {};
  if (fstat(fileno(file_.get()), &status) != 0) {
    throw DataError(path, std::string("cannot be read: ") + std::strerror(errno));
  }
  if (!S_ISREG(status.st_mode)) throw DataError(path, "is not a file");
  size_ = status.st_size;
}

size_t InputFile::read(std::span<uint8_t> out) noexcept {
  const size_t n = std::fread(out.data(), 1, out.size(), file_.get());
  position_ += static_cast<int64_t>(n);
  return n;
}

void InputFile::read_exact(std::span<uint8_t> out) {
  const size_t n = read(out);
  if (n < out.size()) {
    fail("truncated: " + std::to_string(out.size() - n) + " more bytes were expected");
  }
}

bool InputFile::seek(int64_t position) noexcept {
  if (position < 0 || position > size_) return false;
  if (fseeko(file_.get(), position, SEEK_SET) != 0) return false;
  position_ = position;
  return true;
}

void InputFile::fail(const std::string& what) const { throw DataError(path_, position_, what); }

namespace {

// zlib's state, freed by the destructor.
class Inflater {
 public:
  explicit Inflater(const std::string& path) {
    constexpr int kGzipOnly = 16 + MAX_WBITS;
    if (inflateInit2(&stream_, kGzipOnly) != Z_OK)
      throw DataError(path, "zlib cannot be initialised");
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream_); }
  z_stream& stream() { return stream_; }

 private:
  z_stream stream_{};
};

// The last four bytes of a gzip file declare its unpacked size (modulo 2^32): a hint for
// reserving memory, never trusted beyond `limit` nor beyond deflate's best ratio.
size_t unpacked_size_hint(InputFile& file, int64_t limit) {
  std::array<uint8_t, 4> tail{};
  if (file.size() < 18 || !file.seek(file.size() - 4)) return 0;
  file.read_exact(tail);
  const int64_t declared = tail[0] | tail[1] << 8 | tail[2] << 16 | int64_t{tail[3]} << 24;
  return static_cast<size_t>(std::min({declared, limit, file.size() * 1032}));
}

std::vector<uint8_t> unpack(InputFile& file, int64_t limit) {
  std::vector<uint8_t> out;
  out.reserve(unpacked_size_hint(file, limit));
  file.seek(0);
  Inflater inflater(file.path());
  z_stream& z = inflater.stream();
  std::array<uint8_t, 16384> in;
  std::array<uint8_t, 32768> chunk;
  auto offset = [&] { return file.position() - static_cast<int64_t>(z.avail_in); };
  bool in_member = true;
  while (true) {
    if (z.avail_in == 0) {
      z.next_in = in.data();
      z.avail_in = static_cast<uInt>(file.read(in));
      if (z.avail_in == 0) {
        if (!in_member) return out;
        file.fail("the gzip data end too early: the file is truncated");
      }
    }
    if (!in_member) {  // a gzip file may have several members, one after the other
      inflateReset(&z);
      in_member = true;
    }
    z.next_out = chunk.data();
    z.avail_out = static_cast<uInt>(chunk.size());
    const int code = inflate(&z, Z_NO_FLUSH);
    if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) {
      throw DataError(file.path(), offset(),
                      std::string("damaged gzip data: ") + (z.msg ? z.msg : "unknown error"));
    }
    out.insert(out.end(), chunk.data(), z.next_out);
    if (static_cast<int64_t>(out.size()) > limit) {
      throw DataError(file.path(), offset(),
                      "is longer than " + format_bytes(Bytes(limit)) + " when unpacked");
    }
    in_member = code != Z_STREAM_END;
  }
}

}  // namespace

FileContent read_whole_file(const std::string& path, int64_t limit) {
  InputFile file(path);
  std::array<uint8_t, 2> magic{};
  if (file.read(magic) == 2 && magic[0] == 0x1f && magic[1] == 0x8b) {
    return {unpack(file, limit), true};
  }
  if (file.size() > limit) {
    throw DataError(path, limit, "is longer than " + format_bytes(Bytes(limit)));
  }
  FileContent content;
  content.bytes.resize(static_cast<size_t>(file.size()));
  file.seek(0);
  file.read_exact(content.bytes);
  return content;
}

}  // namespace tidemark
