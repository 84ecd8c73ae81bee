#include "runtime/telemetry/tensorboard.h"

#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "runtime/core/errors.h"

namespace tidemark {
namespace {

// Protobuf's wire types.
enum Wire : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void put_key(std::string& out, uint32_t field, Wire wire) {
  put_varint(out, field << 3 | wire);
}

// Little-endian.
template <class Word>
void put_word(std::string& out, Word word) {
  for (size_t i = 0; i < sizeof(Word); ++i) out += static_cast<char>(word >> (8 * i));
}

void put_bytes(std::string& out, uint32_t field, std::string_view bytes) {
  put_key(out, field, kBytes);
  put_varint(out, bytes.size());
  out += bytes;
}

// An Event with its wall_time, field 1, in seconds.
std::string event_now() {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  std::string event;
  put_key(event, 1, kFixed64);
  put_word(event, std::bit_cast<uint64_t>(now.count()));
  return event;
}

// A Summary.Value: tag and simple_value.
std::string value_message(const Scalar& scalar) {
  std::string value;
  put_bytes(value, 1, scalar.tag);
  put_key(value, 2, kFixed32);
  put_word(value, std::bit_cast<uint32_t>(scalar.value));
  return value;
}

// TFRecord's mask: sums over data that contain sums would be weak.
uint32_t masked(uint32_t crc) { return std::rotr(crc, 15) + 0xa282ead8; }

std::string file_name() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto microseconds = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  return "events.out.tfevents." + std::to_string(microseconds) + "." +
         std::to_string(getpid()) + ".tidemark";
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> made{};
    for (uint32_t i = 0; i < made.size(); ++i) {
      uint32_t crc = i;
      for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0x82f63b78 : 0);
      made[i] = crc;
    }
    return made;
  }();
  uint32_t crc = 0xffffffff;
  for (const char c : bytes) crc = crc >> 8 ^ table[(crc ^ static_cast<uint8_t>(c)) & 0xff];
  return ~crc;
}

TensorBoardWriter::TensorBoardWriter(const std::string& folder) : file_(nullptr, std::fclose) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw DataError(folder, "cannot be made: " + error.message());
  path_ = (std::filesystem::path(folder) / file_name()).string();
  file_.reset(std::fopen(path_.c_str(), "wbx"));
  if (!file_) throw DataError(path_, std::string("cannot be written: ") + std::strerror(errno));
  std::string event = event_now();
  put_bytes(event, 3, "brain.Event:2");  // file_version
  write(event);
}

void TensorBoardWriter::add(int64_t step, std::span<const Scalar> scalars) {
  std::string event = event_now();
  put_key(event, 2, kVarint);
  put_varint(event, static_cast<uint64_t>(step));
  std::string summary;
  for (const Scalar& scalar : scalars) put_bytes(summary, 1, value_message(scalar));
  put_bytes(event, 5, summary);
  write(event);
}

void TensorBoardWriter::write(std::string_view event) {
  std::string record;
  put_word(record, uint64_t{event.size()});
  put_word(record, masked(crc32c(record)));
  record += event;
  put_word(record, masked(crc32c(event)));
  if (std::fwrite(record.data(), 1, record.size(), file_.get()) != record.size() ||
      std::fflush(file_.get()) != 0) {
    throw DataError(path_, std::string("cannot be written: ") + std::strerror(errno));
  }
}

}  // namespace tidemark
