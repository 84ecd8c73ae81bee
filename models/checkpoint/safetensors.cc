#include "models/checkpoint/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <set>

#include <nlohmann/json.hpp>

#include "models/checkpoint/halves.h"
#include "models/checkpoint/safetensors_header.h"
#include "runtime/core/errors.h"

namespace tidemark {
namespace {

static_assert(std::endian::native == std::endian::little, "values are read as they are stored");

constexpr size_t kPiece = size_t{64} << 10;

std::string_view type_name(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return "F32";
    case DType::kInt64: return "I64";
    case DType::kInt32: return "I32";
    case DType::kUInt8: return "U8";
    case DType::kBool: return "BOOL";
    case DType::kBFloat16: return "BF16";
    case DType::kFloat16: return "F16";
  }
  return "?";
}

std::span<uint8_t> as_uint8(std::span<std::byte> bytes) {
  return {reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()};
}

std::string as_json(const nlohmann::json& value) {
  try {
    return value.dump();
  } catch (const nlohmann::json::exception& error) {
    throw UsageError(std::string("[safetensors] names and metadata must be UTF-8: ") +
                     error.what());
  }
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path) : WeightSource(path), file_(path) {
  std::array<uint8_t, kSafetensorsPrefix> prefix{};
  file_.read_exact(prefix);
  uint64_t length = 0;
  std::memcpy(&length, prefix.data(), sizeof(length));
  const auto rest = static_cast<uint64_t>(file_.size() - kSafetensorsPrefix);
  if (length > rest || length > static_cast<uint64_t>(kSafetensorsLongestHeader)) {
    throw DataError(path, 0,
                    "a header of " + std::to_string(length) + " bytes in a file with " +
                        std::to_string(rest) + " more (at most " +
                        std::to_string(kSafetensorsLongestHeader) + " are allowed)");
  }
  std::string json(static_cast<size_t>(length), '\0');
  file_.read_exact(as_uint8(std::as_writable_bytes(std::span(json))));
  data_begin_ = kSafetensorsPrefix + static_cast<int64_t>(length);
  SafetensorsHeader header = parse_safetensors_header(path, json, file_.size());
  set_metadata(std::move(header.metadata));
  set_entries(std::move(header.entries));
}

void SafetensorsFile::read_range(const WeightEntry& entry, Bytes offset,
                                 std::span<std::byte> out) {
  // Half-precision elements take half as many bytes in the file.
  const bool halves = entry.type == "F16" || entry.type == "BF16";
  const int64_t begin = entry.begin + (halves ? offset.count() / 2 : offset.count());
  if (!file_.seek(begin)) fail(entry, "cannot be reached");
  if (halves) {
    read_halves(entry, out);
    return;
  }
  file_.read_exact(as_uint8(out));
  if (entry.dtype != DType::kBool) return;
  const auto bad = std::find_if(out.begin(), out.end(),
                                [](std::byte b) { return std::to_integer<int>(b) > 1; });
  if (bad != out.end()) {
    throw DataError(path(), begin + (bad - out.begin()),
                    "tensor '" + entry.name + "': a bool that is neither 0 nor 1");
  }
}

void SafetensorsFile::read_halves(const WeightEntry& entry, std::span<std::byte> out) {
  const auto convert = entry.type == "F16" ? half_to_float : bfloat16_to_float;
  std::array<uint16_t, kPiece / sizeof(uint16_t)> halves;
  for (size_t left = out.size() / sizeof(float), at = 0; left > 0;) {
    const size_t count = std::min(left, halves.size());
    file_.read_exact(as_uint8(std::as_writable_bytes(std::span(halves).first(count))));
    for (size_t i = 0; i < count; ++i) {
      const float value = convert(halves[i]);
      std::memcpy(out.data() + at, &value, sizeof(value));
      at += sizeof(value);
    }
    left -= count;
  }
}

SafetensorsWriter::SafetensorsWriter(const std::string& path,
                                     const std::vector<SafetensorsSpec>& tensors,
                                     const WeightMetadata& metadata)
    : file_(path) {
  // The text is written by hand: the JSON library's objects grow slowly or sort their names,
  // but the header lists tensors in the order of their data.
  int64_t offset = 0;
  std::set<std::string_view> names{"__metadata__"};
  std::string body;
  for (const SafetensorsSpec& tensor : tensors) {
    if (!names.insert(tensor.name).second) {
      throw UsageError("[safetensors] '" + tensor.name + "' is not a valid tensor name" +
                       " or appears twice");
    }
    const int64_t end = offset + (size_of(tensor.dtype) * tensor.shape.elements()).count();
    body += body.empty() && metadata.empty() ? "" : ",";
    body += as_json(tensor.name);
    body += ':' + nlohmann::ordered_json{{"dtype", type_name(tensor.dtype)},
                                         {"shape", std::vector<int64_t>(tensor.shape.begin(),
                                                                        tensor.shape.end())},
                                         {"data_offsets", {offset, end}}}
                      .dump();
    offset = end;
  }
  std::string text = "{";
  if (!metadata.empty()) text += "\"__metadata__\":" + as_json(metadata);
  text += body + "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();
  header_.assign(sizeof(length), '\0');
  std::memcpy(header_.data(), &length, sizeof(length));
  header_ += text;
  expected_ = static_cast<int64_t>(header_.size()) + offset;
  file_.write(std::as_bytes(std::span(header_)));
}

void SafetensorsWriter::write(std::span<const std::byte> bytes) { file_.write(bytes); }

void SafetensorsWriter::commit() {
  if (file_.size() != expected_) {
    throw UsageError("[safetensors] " + std::to_string(file_.size()) + " of " +
                     std::to_string(expected_) + " bytes have been written");
  }
  file_.commit();
}

}  // namespace tidemark
