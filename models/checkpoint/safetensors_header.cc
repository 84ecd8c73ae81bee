#include "models/checkpoint/safetensors_header.h"

#include <algorithm>
#include <array>
#include <limits>
#include <unordered_set>

#include <nlohmann/json.hpp>

#include "runtime/core/errors.h"
#include "runtime/core/located_json.h"

namespace tidemark {
namespace {

using nlohmann::json;

constexpr size_t kLongestMessage = 200;

struct TypeName {
  std::string_view name;
  int64_t size;
  std::optional<DType> dtype;
};

constexpr std::array<TypeName, 15> kTypes{{
    {"F32", 4, DType::kFloat32},
    {"F16", 2, DType::kFloat32},
    {"BF16", 2, DType::kFloat32},
    {"I64", 8, DType::kInt64},
    {"I32", 4, DType::kInt32},
    {"U8", 1, DType::kUInt8},
    {"BOOL", 1, DType::kBool},
    {"F64", 8, {}},
    {"I16", 2, {}},
    {"I8", 1, {}},
    {"U64", 8, {}},
    {"U32", 4, {}},
    {"U16", 2, {}},
    {"F8_E4M3", 1, {}},
    {"F8_E5M2", 1, {}},
}};

// Receives the parser's events in order. At each point only certain events are valid, so
// nothing is kept but the header's contents, and depth and lengths have small bounds.
class Handler final : public nlohmann::json_sax<json> {
 public:
  Handler(const std::string& name, int64_t file_size, int64_t data_begin)
      : name_(name), file_size_(file_size), data_begin_(data_begin) {}

  int64_t* reached() { return &reached_; }
  SafetensorsHeader take() { return std::move(header_); }

  bool null() override { unexpected("null"); }
  bool boolean(bool) override { unexpected("a boolean"); }
  bool number_float(double, const std::string& text) override {
    unexpected("the number " + text.substr(0, kLongestMessage));
  }
  bool binary(json::binary_t&) override { unexpected("binary data"); }
  bool number_integer(int64_t value) override {
    unexpected("the number " + std::to_string(value));
  }

  bool number_unsigned(uint64_t value) override {
    if (state_ != State::kShape && state_ != State::kOffsets) {
      unexpected("the number " + std::to_string(value));
    }
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      fail(std::to_string(value) + " is too large");
    }
    if (state_ == State::kShape) {
      if (entry_.shape.rank() == kMaxRank) {
        fail("more than " + std::to_string(kMaxRank) + " dimensions");
      }
      entry_.shape.push_back(static_cast<int64_t>(value));
    } else {
      if (offsets_ == 2) fail("more than two data_offsets");
      (offsets_++ == 0 ? entry_.begin : entry_.end) = static_cast<int64_t>(value);
    }
    return true;
  }

  bool string(std::string& text) override {
    if (state_ == State::kMetadata) {
      if (!header_.metadata.emplace(key_, std::move(text)).second) {
        fail("'" + shortened(key_) + "' appears twice in __metadata__");
      }
    } else if (state_ == State::kEntry && key_ == "dtype") {
      entry_.type = std::move(text);
    } else {
      unexpected("text");
    }
    return true;
  }

  bool start_object(size_t) override {
    if (state_ == State::kStart) {
      state_ = State::kNames;
    } else if (state_ == State::kNames && key_ == "__metadata__") {
      state_ = State::kMetadata;
    } else if (state_ == State::kNames) {
      state_ = State::kEntry;
      entry_ = {};
      entry_.name = key_;
      seen_ = {};
      offsets_ = 0;
    } else {
      unexpected("an object");
    }
    return true;
  }

  bool key(std::string& text) override {
    key_ = std::move(text);
    if (state_ == State::kNames && !names_.insert(key_).second) {
      fail("'" + shortened(key_) + "' appears twice");
    }
    if (state_ == State::kEntry) {
      const auto known = std::find(kKeys.begin(), kKeys.end(), key_);
      if (known == kKeys.end()) fail("unknown key '" + shortened(key_) + "'");
      bool& seen = seen_[static_cast<size_t>(known - kKeys.begin())];
      if (seen) fail("'" + key_ + "' appears twice");
      seen = true;
    }
    return true;
  }

  bool end_object() override {
    if (state_ == State::kEntry) add_entry();
    state_ = state_ == State::kNames ? State::kEnd : State::kNames;
    return true;
  }

  bool start_array(size_t) override {
    if (state_ != State::kEntry || key_ == "dtype") unexpected("an array");
    state_ = key_ == "shape" ? State::kShape : State::kOffsets;
    return true;
  }

  bool end_array() override {
    state_ = State::kEntry;
    return true;
  }

  bool parse_error(size_t, const std::string&, const json::exception& error) override {
    fail("not JSON: " + describe_json_fault(error));
  }

  // The message names the tensor being read, if any.
  [[noreturn]] void fail(const std::string& what) const {
    const bool in_entry =
        state_ == State::kEntry || state_ == State::kShape || state_ == State::kOffsets;
    fail_at(kSafetensorsPrefix + reached_,
            in_entry ? "tensor '" + shortened(entry_.name) + "': " + what : what);
  }

  [[noreturn]] void fail_at(int64_t offset, const std::string& what) const {
    throw DataError(name_, offset, what);
  }

  // Tensors must fill the data in order, without gaps, to the end.
  void check_layout() {
    std::stable_sort(header_.entries.begin(), header_.entries.end(), [](auto& a, auto& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
    });
    int64_t at = data_begin_;
    for (const WeightEntry& entry : header_.entries) {
      if (entry.begin != at) {
        fail_at(entry.begin, "tensor '" + shortened(entry.name) + "': its data begin at byte " +
                                 std::to_string(entry.begin) +
                                 ", but the previous data end at byte " + std::to_string(at) +
                                 (entry.begin < at ? ": they overlap" : ": there is a gap"));
      }
      at = entry.end;
    }
    if (at != file_size_) {
      fail_at(at, "the tensors end here, but the file has " + std::to_string(file_size_ - at) +
                      " more bytes");
    }
  }

 private:
  enum class State { kStart, kNames, kMetadata, kEntry, kShape, kOffsets, kEnd };
  static constexpr std::array<std::string_view, 3> kKeys{"dtype", "shape", "data_offsets"};

  static std::string shortened(const std::string& text) {
    return text.substr(0, kLongestMessage);
  }

  [[noreturn]] void unexpected(const std::string& what) const {
    static constexpr std::string_view kWanted[] = {
        "the header's object",  "a tensor's object", "text",   "dtype, shape or data_offsets",
        "a size of at least 0", "an offset",         "no more"};
    fail("found " + what + ", expected " + std::string(kWanted[static_cast<size_t>(state_)]));
  }

  void add_entry() {
    for (size_t i = 0; i < kKeys.size(); ++i) {
      if (!seen_[i]) fail("no " + std::string(kKeys[i]));
    }
    if (offsets_ != 2) fail("data_offsets has " + std::to_string(offsets_) + " numbers");
    const auto type = std::find_if(kTypes.begin(), kTypes.end(),
                                   [&](const TypeName& t) { return t.name == entry_.type; });
    if (type == kTypes.end()) fail("unknown dtype '" + shortened(entry_.type) + "'");
    entry_.dtype = type->dtype;
    // A size of 0 makes the product 0, whatever the other extents are. They are bounded all the
    // same, as their products are used.
    int64_t bytes = type->size, bound = type->size;
    for (const int64_t extent : entry_.shape) {
      if (__builtin_mul_overflow(bound, std::max<int64_t>(extent, 1), &bound)) {
        fail("the shape " + entry_.shape.to_string() + " is too large");
      }
      bytes *= extent;
    }
    const int64_t data = file_size_ - data_begin_;
    if (entry_.begin > entry_.end || entry_.end > data) {
      fail("data_offsets [" + std::to_string(entry_.begin) + ", " + std::to_string(entry_.end) +
           ") do not lie within the " + std::to_string(data) + " bytes of data");
    }
    if (bytes != entry_.end - entry_.begin) {
      fail(entry_.type + " " + entry_.shape.to_string() + " takes " + std::to_string(bytes) +
           " bytes, but data_offsets span " + std::to_string(entry_.end - entry_.begin));
    }
    entry_.begin += data_begin_;
    entry_.end += data_begin_;
    header_.entries.push_back(std::move(entry_));
  }

  const std::string& name_;
  const int64_t file_size_;
  const int64_t data_begin_;
  int64_t reached_ = 0;
  State state_ = State::kStart;
  std::string key_;
  WeightEntry entry_;
  std::array<bool, 3> seen_{};
  int offsets_ = 0;
  std::unordered_set<std::string> names_;
  SafetensorsHeader header_;
};

}  // namespace

SafetensorsHeader parse_safetensors_header(const std::string& name, std::string_view json_text,
                                           int64_t file_size) {
  const int64_t data_begin = kSafetensorsPrefix + static_cast<int64_t>(json_text.size());
  Handler handler(name, file_size, data_begin);
  if (!json_text.starts_with('{')) handler.fail("the header is not a JSON object");
  const LocatedRange range(json_text, handler.reached());
  (void)json::sax_parse(range.begin, range.end, &handler);
  handler.check_layout();
  return handler.take();
}

}  // namespace tidemark
