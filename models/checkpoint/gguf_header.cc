#include "models/checkpoint/gguf_header.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <unordered_set>
#include <utility>

#include "runtime/core/errors.h"

namespace tidemark {
namespace {

constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr int kMaxArrayDepth = 4;
constexpr uint64_t kMaxNameBytes = 65535;  // the format's limit for keys
constexpr uint32_t kMaxDimensions = 4;     // the format's limit
constexpr uint64_t kSmallestValue = 8 + 1 + 4 + 1, kSmallestTensor = 8 + 1 + 4 + 4 + 8;
constexpr uint64_t kSmallestText = 8, kSmallestArray = 4 + 8;

class HeaderReader {
 public:
  explicit HeaderReader(GgufInput& input) : in_(input) {}

  GgufHeader read() {
    if (in_.number<uint32_t>() != kMagic) in_.fail("is not a GGUF file");
    const auto version = in_.number<uint32_t>();
    if (version == 2U << 24 || version == 3U << 24)
      in_.fail("big-endian files are not supported");
    if (version != 2 && version != 3) {
      in_.fail("version " + std::to_string(version) + " is not supported; 2 and 3 are");
    }
    const auto tensors = in_.number<uint64_t>(), values = in_.number<uint64_t>();
    in_.set_about(std::to_string(values) + " values: ");
    in_.need(values, kSmallestValue);
    for (uint64_t i = 0; i < values; ++i) read_value();
    in_.set_about(std::to_string(tensors) + " tensors: ");
    in_.need(tensors, kSmallestTensor);
    std::vector<Tensor> found;
    for (uint64_t i = 0; i < tensors; ++i) found.push_back(read_tensor());
    place(std::move(found));
    return std::move(header_);
  }

 private:
  struct Tensor {
    WeightEntry entry;  // without its place
    const GgufType* type = nullptr;
    uint64_t offset = 0;
    int64_t bytes = 0;
  };

  std::string read_name(const std::string& what) {
    in_.set_about(what + ": ");
    std::string name = in_.text(kMaxNameBytes);
    if (name.empty()) in_.fail("has no name");
    in_.set_about(what + ' ' + quoted_name(name) + ": ");
    return name;
  }

  void read_value() {
    std::string key = read_name("key");
    GgufValue value{.kind = in_.kind()};
    value.begin = in_.file().position();
    if (value.kind == GgufKind::kArray) {
      std::tie(value.element, value.count) = read_array();
      value.begin = in_.file().position();
      skip_elements(value.element, value.count, 1);
    } else {
      skip_elements(value.kind, 1, 1);
    }
    if (key == "general.alignment") read_alignment(value);
    if (!header_.values.emplace(std::move(key), value).second) in_.fail("appears twice");
  }

  std::pair<GgufKind, uint64_t> read_array() {
    const GgufKind element = in_.kind();
    return {element, in_.number<uint64_t>()};
  }

  void skip_elements(GgufKind kind, uint64_t count, int depth) {
    if (depth > kMaxArrayDepth) {
      in_.fail("arrays within more than " + std::to_string(kMaxArrayDepth) + " others");
    }
    if (kind == GgufKind::kText) {
      in_.need(count, kSmallestText);
      for (uint64_t i = 0; i < count; ++i) in_.skip(in_.number<uint64_t>(), 1);
    } else if (kind == GgufKind::kArray) {
      in_.need(count, kSmallestArray);
      for (uint64_t i = 0; i < count; ++i) {
        const auto [element, inner] = read_array();
        skip_elements(element, inner, depth + 1);
      }
    } else {
      in_.skip(count, size_of(kind));
    }
  }

  void read_alignment(const GgufValue& value) {
    if (value.kind != GgufKind::kUInt32) in_.fail("must be a uint32");
    in_.file().seek(value.begin);
    alignment_ = in_.number<uint32_t>();
    if (!std::has_single_bit(alignment_)) {
      in_.fail(std::to_string(alignment_) + " is not a power of two");
    }
  }

  Tensor read_tensor() {
    Tensor tensor;
    tensor.entry.name = read_name("tensor");
    if (!names_.insert(tensor.entry.name).second) in_.fail("appears twice");
    const auto rank = in_.number<uint32_t>();
    if (rank > kMaxDimensions) in_.fail(std::to_string(rank) + " dimensions");
    for (uint32_t i = 0; i < rank; ++i) tensor.entry.shape.push_back(read_extent());
    std::reverse(&tensor.entry.shape[0], &tensor.entry.shape[0] + rank);
    const auto number = in_.number<uint32_t>();
    tensor.type = find_gguf_type(number);
    if (tensor.type == nullptr) {
      in_.fail("is of type " + std::to_string(number) + ", which is not supported");
    }
    tensor.entry.type = tensor.type->name;
    if (tensor.type->to_floats != nullptr) tensor.entry.dtype = DType::kFloat32;
    tensor.bytes = bytes_of(tensor.entry, *tensor.type);
    tensor.offset = in_.number<uint64_t>();
    if (tensor.offset % alignment_ != 0) {
      in_.fail("its offset " + std::to_string(tensor.offset) + " is not a multiple of " +
               std::to_string(alignment_));
    }
    return tensor;
  }

  int64_t read_extent() {
    const auto extent = in_.number<uint64_t>();
    if (extent == 0 || extent > uint64_t{1} << 62) {
      in_.fail("a dimension of " + std::to_string(extent));
    }
    return static_cast<int64_t>(extent);
  }

  int64_t bytes_of(const WeightEntry& entry, const GgufType& type) const {
    // No type takes more than 8 bytes an element, here or in the file.
    int64_t bound = 8;
    for (const int64_t extent : entry.shape) {
      if (__builtin_mul_overflow(bound, extent, &bound)) {
        in_.fail("the shape " + entry.shape.to_string() + " is too large");
      }
    }
    const int64_t row = entry.shape.rank() == 0 ? 1 : entry.shape.back();
    if (row % type.block_elements != 0) {
      in_.fail("rows of " + std::to_string(row) + " elements are not made of " + entry.type +
               "'s blocks of " + std::to_string(type.block_elements));
    }
    return entry.shape.elements() / type.block_elements * type.block_bytes;
  }

  // Turns offsets into places. Tensors may neither overlap nor end behind the file.
  void place(std::vector<Tensor> tensors) {
    std::stable_sort(tensors.begin(), tensors.end(),
                     [](const Tensor& a, const Tensor& b) { return a.offset < b.offset; });
    const auto end = static_cast<uint64_t>(in_.file().size());
    uint64_t data = static_cast<uint64_t>(in_.file().position());
    data = (data + alignment_ - 1) / alignment_ * alignment_;
    uint64_t reached = data;
    for (Tensor& tensor : tensors) {
      WeightEntry& entry = tensor.entry;
      in_.set_about("tensor " + quoted_name(entry.name) + ": ");
      if (data > end || tensor.offset > end - data ||
          static_cast<uint64_t>(tensor.bytes) > end - data - tensor.offset) {
        in_.fail("its " + std::to_string(tensor.bytes) + " bytes at offset " +
                 std::to_string(tensor.offset) + " lie beyond the end of the file");
      }
      const uint64_t begin = data + tensor.offset;
      if (begin < reached) {
        in_.fail("its data begin at byte " + std::to_string(begin) +
                 ", but the previous data end at byte " + std::to_string(reached) +
                 ": they overlap");
      }
      reached = begin + static_cast<uint64_t>(tensor.bytes);
      entry.begin = static_cast<int64_t>(begin);
      entry.end = static_cast<int64_t>(reached);
      header_.entries.push_back(std::move(entry));
      header_.types.push_back(tensor.type);
    }
  }

  GgufInput& in_;
  GgufHeader header_;
  std::unordered_set<std::string> names_;
  uint32_t alignment_ = 32;
};

}  // namespace

GgufHeader read_gguf_header(GgufInput& input) {
  input.file().seek(0);
  return HeaderReader(input).read();
}

}  // namespace tidemark
