#include "models/text/tuning/line_file.h"

#include <algorithm>
#include <array>

#include "models/text/unicode.h"
#include "runtime/core/errors.h"

namespace tidemark {
namespace {

constexpr size_t kLineBuffer = 1 << 16;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

LineFile::LineFile(const std::string& path, Bytes longest_line, Bytes unpack_limit)
    : path_(path), longest_line_(static_cast<size_t>(longest_line.count())) {
  file_.emplace(path);
  std::array<uint8_t, 2> magic{};
  is_unpacked_ = file_->read(magic) == 2 && magic[0] == 0x1f && magic[1] == 0x8b;
  if (is_unpacked_) {
    file_.reset();
    buffer_ = read_whole_file(path, unpack_limit.count()).bytes;
    filled_ = buffer_.size();
  } else {
    buffer_.resize(kLineBuffer);
    file_->seek(0);
  }
}

Bytes LineFile::bytes() const { return Bytes(static_cast<int64_t>(buffer_.capacity())); }

int64_t LineFile::size() const { return file_ ? file_->size() : static_cast<int64_t>(filled_); }

void LineFile::seek(int64_t position) { position_ = position; }

std::string_view LineFile::peek() {
  const auto is_at_hand = [&] {
    return position_ >= buffer_begin_ &&
           position_ < buffer_begin_ + static_cast<int64_t>(filled_);
  };
  if (!is_at_hand() && file_) {
    if (!file_->seek(position_)) throw DataError(path_, position_, "cannot be reached");
    buffer_begin_ = position_;
    filled_ = file_->read(buffer_);
    if (filled_ < buffer_.size() && file_->position() < file_->size()) {
      file_->fail("cannot be read");
    }
  }
  if (!is_at_hand()) return {};
  const auto from = static_cast<size_t>(position_ - buffer_begin_);
  return {reinterpret_cast<const char*>(buffer_.data()) + from, filled_ - from};
}

void LineFile::skip_mark() {
  if (position_ == 0 && peek().starts_with(kByteOrderMark)) position_ = kByteOrderMark.size();
}

bool LineFile::next(std::string& line) {
  skip_mark();
  const int64_t start = position_;
  line.clear();
  while (true) {
    const std::string_view at_hand = peek();
    if (at_hand.empty()) {
      if (position_ == start) return false;
      break;
    }
    const size_t end = at_hand.find('\n');
    const size_t size = std::min(end, at_hand.size());
    if (line.size() + size > longest_line_) {
      fail(start, "is longer than " + format_bytes(Bytes(static_cast<int64_t>(longest_line_))));
    }
    line += at_hand.substr(0, size);
    position_ += static_cast<int64_t>(size);
    if (end == std::string_view::npos) continue;
    ++position_;
    break;
  }
  return true;
}

bool LineFile::next_block(std::string& block, size_t size) {
  skip_mark();
  block.clear();
  const int64_t start = position_;
  for (std::string_view at_hand = peek(); block.size() < size && !at_hand.empty();
       at_hand = peek()) {
    block += at_hand.substr(0, size - block.size());
    position_ = start + static_cast<int64_t>(block.size());
  }
  if (block.size() == size && !peek().empty()) {
    const size_t line_end = block.rfind('\n');
    block.resize(line_end != std::string::npos ? line_end + 1
                                               : size - incomplete_utf8_suffix(block));
  }
  position_ = start + static_cast<int64_t>(block.size());
  return !block.empty();
}

void LineFile::fail(int64_t start, const std::string& what, size_t within) {
  const int64_t fault = start + static_cast<int64_t>(within);
  int64_t line = 1;
  for (position_ = 0; position_ < fault;) {
    const std::string_view at_hand = peek();
    if (at_hand.empty()) break;
    const auto part = at_hand.substr(0, static_cast<size_t>(fault - position_));
    line += std::count(part.begin(), part.end(), '\n');
    position_ += static_cast<int64_t>(part.size());
  }
  throw DataError(path_, is_unpacked_ ? -1 : fault,
                  "line " + std::to_string(line) + ' ' + what);
}

}  // namespace tidemark
