#include "models/checkpoint/gguf.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "runtime/core/errors.h"

namespace tidemark {
namespace {

// Blocks are read and converted so many elements at a time.
constexpr int64_t kElementsAtOnce = 16384;
static_assert(kElementsAtOnce >= kMaxGgufBlockElements);

}  // namespace

GgufFile::GgufFile(const std::string& path) : WeightSource(path), input_(path) {
  GgufHeader header = read_gguf_header(input_);
  values_ = std::move(header.values);
  types_ = std::move(header.types);
  set_entries(std::move(header.entries));
}

void GgufFile::fail_value(std::string_view key, const std::string& what) const {
  const auto value = values_.find(key);
  throw DataError(path(), value == values_.end() ? -1 : value->second.begin,
                  "key " + quoted_name(key) + ": " + what);
}

const GgufValue& GgufFile::go_to(std::string_view key, bool array) {
  const auto found = values_.find(key);
  if (found == values_.end()) fail_value(key, "is missing");
  const GgufValue& value = found->second;
  if ((value.kind == GgufKind::kArray) != array) {
    fail_value(key, array ? "is not an array" : "is an array");
  }
  input_.set_about("key " + quoted_name(found->first) + ": ");
  if (!input_.file().seek(value.begin)) fail_value(key, "cannot be reached");
  return value;
}

std::string GgufFile::text(std::string_view key) {
  if (go_to(key, false).kind != GgufKind::kText) fail_value(key, "is not text");
  return input_.text();
}

bool GgufFile::flag(std::string_view key) {
  if (go_to(key, false).kind != GgufKind::kBool) fail_value(key, "is not a bool");
  const auto value = input_.number<uint8_t>();
  if (value > 1) fail_value(key, "a bool that is neither 0 nor 1");
  return value == 1;
}

int64_t GgufFile::count(std::string_view key) {
  const GgufKind kind = go_to(key, false).kind;
  int64_t value = 0;
  switch (kind) {
    case GgufKind::kFloat32:
    case GgufKind::kFloat64:
    case GgufKind::kBool:
    case GgufKind::kText:
    case GgufKind::kArray: fail_value(key, "is not an integer");
    case GgufKind::kUInt64:  // those of 2^63 and more become negative
    case GgufKind::kInt64: value = input_.number<int64_t>(); break;
    default: value = static_cast<int64_t>(next_number(key, kind));  // exact: 32 bits at most
  }
  if (value < 0) fail_value(key, "is not from 0 to 2^63 - 1");
  return value;
}

double GgufFile::number(std::string_view key) {
  return next_number(key, go_to(key, false).kind);
}

double GgufFile::next_number(std::string_view key, GgufKind kind) {
  switch (kind) {
    case GgufKind::kUInt8: return input_.number<uint8_t>();
    case GgufKind::kInt8: return input_.number<int8_t>();
    case GgufKind::kUInt16: return input_.number<uint16_t>();
    case GgufKind::kInt16: return input_.number<int16_t>();
    case GgufKind::kUInt32: return input_.number<uint32_t>();
    case GgufKind::kInt32: return input_.number<int32_t>();
    case GgufKind::kFloat32: return input_.number<float>();
    case GgufKind::kUInt64: return static_cast<double>(input_.number<uint64_t>());
    case GgufKind::kInt64: return static_cast<double>(input_.number<int64_t>());
    case GgufKind::kFloat64: return input_.number<double>();
    case GgufKind::kBool:
    case GgufKind::kText:
    case GgufKind::kArray: break;
  }
  fail_value(key, "is not a number");
}

std::vector<std::string> GgufFile::texts(std::string_view key) {
  const GgufValue& value = go_to(key, true);
  if (value.element != GgufKind::kText) fail_value(key, "is not an array of text");
  std::vector<std::string> all;
  all.reserve(static_cast<size_t>(value.count));
  for (uint64_t i = 0; i < value.count; ++i) all.push_back(input_.text());
  return all;
}

std::vector<double> GgufFile::numbers(std::string_view key) {
  const GgufValue& value = go_to(key, true);
  std::vector<double> all;
  for (uint64_t i = 0; i < value.count; ++i) all.push_back(next_number(key, value.element));
  return all;
}

void GgufFile::read_range(const WeightEntry& entry, Bytes offset, std::span<std::byte> out) {
  const GgufType& type = *types_[index_of(entry)];
  const int64_t first = offset.count() / size_of(DType::kFloat32).count();
  const int64_t block = type.block_elements;
  if (!input_.file().seek(entry.begin + first / block * type.block_bytes)) {
    fail(entry, "cannot be reached");
  }
  std::array<uint8_t, kElementsAtOnce * sizeof(float)> bytes;
  std::array<float, kElementsAtOnce> floats;
  // A range may begin and end within blocks.
  auto before = static_cast<size_t>(first % block);
  while (!out.empty()) {
    const size_t wanted = before + out.size() / sizeof(float);
    const auto per_block = static_cast<size_t>(block);
    const size_t blocks =
        std::min((wanted + per_block - 1) / per_block, floats.size() / per_block);
    const size_t count = std::min(wanted, blocks * per_block) - before;
    const auto read = std::span(bytes).first(blocks * static_cast<size_t>(type.block_bytes));
    input_.file().read_exact(read);
    type.to_floats(read.data(), blocks, floats.data());
    std::memcpy(out.data(), floats.data() + before, count * sizeof(float));
    out = out.subspan(count * sizeof(float));
    before = 0;
  }
}

}  // namespace tidemark
