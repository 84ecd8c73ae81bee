#include "models/checkpoint/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "models/checkpoint/safetensors.h"
#include "runtime/core/errors.h"
#include "tests/models/checkpoint/gguf_builder.h"

namespace tidemark {
namespace {

using testing::append;
using testing::append_text;
using testing::ByteVector;
using ::testing::ElementsAre;
using testing::GgufBuilder;
using ::testing::HasSubstr;
using testing::TempFolder;

constexpr uint64_t kHuge = uint64_t{1} << 63;

std::string golden(const std::string& name) {
  return std::string(TIDEMARK_GOLDEN_DIR) + '/' + name;
}

std::vector<std::byte> read(WeightSource& source, const WeightEntry& entry) {
  std::vector<std::byte> values(static_cast<size_t>(entry.bytes().count()));
  source.read(entry, values);
  return values;
}

class GgufTest : public ::testing::Test {
 protected:
  std::string path() const { return folder_.path() + "/a.gguf"; }
  std::string write(const ByteVector& bytes) { return folder_.write("a.gguf", bytes); }
  std::string complaint(const std::function<void()>& work, size_t size) {
    try {
      work();
    } catch (const DataError& error) {
      EXPECT_EQ(error.file(), path());
      EXPECT_GE(error.offset(), 0) << error.what();
      EXPECT_LE(error.offset(), static_cast<int64_t>(size)) << error.what();
      EXPECT_LT(std::string(error.what()).size(), 1000u);
      return error.what();
    }
    ADD_FAILURE() << "no DataError";
    return "";
  }
  std::string complaint(const ByteVector& bytes) {
    write(bytes);
    return complaint([&] { GgufFile{path()}; }, bytes.size());
  }

  TempFolder folder_;
};

// gguf_types.safetensors has what the Python package gguf makes of each tensor.
TEST_F(GgufTest, EachTypeIsReadToTheBit) {
  GgufFile file(golden("gguf_types.gguf"));
  SafetensorsFile expected(golden("gguf_types.safetensors"));
  EXPECT_EQ(expected.entries().size(), 13u);
  for (const WeightEntry& entry : expected.entries()) {
    const WeightEntry* ours = file.find(entry.name);
    ASSERT_NE(ours, nullptr) << entry.name;
    EXPECT_EQ(ours->type, entry.name);
    EXPECT_EQ(ours->shape, entry.shape) << entry.name;
    EXPECT_EQ(read(file, *ours), read(expected, entry)) << entry.name;
  }
}

TEST_F(GgufTest, RangesMayBeginAndEndAnywhere) {
  GgufFile file(golden("gguf_types.gguf"));
  for (const WeightEntry& entry : file.entries()) {
    if (!entry.dtype) continue;
    const std::vector<std::byte> whole = read(file, entry);
    const size_t size = whole.size();
    for (const size_t begin : {size_t{0}, size_t{4}, size / 8 * 4, size - 4}) {
      for (const size_t count : {size_t{4}, size_t{260}, size}) {
        std::vector<std::byte> some(std::min(count, size - begin));
        file.read(entry, Bytes(static_cast<int64_t>(begin)), some);
        EXPECT_EQ(std::memcmp(some.data(), whole.data() + begin, some.size()), 0)
            << entry.name << " from " << begin << ", " << some.size() << " bytes";
      }
    }
  }
}

TEST_F(GgufTest, TensorsOfMoreThanOnePiece) {
  GgufBuilder gguf;
  const size_t count = 50001;
  gguf.zeros("w", {count});
  for (size_t i = 0; i < count; ++i) {
    const auto value = static_cast<float>(i);
    std::memcpy(gguf.data.data() + i * sizeof(value), &value, sizeof(value));
  }
  write(gguf.bytes());
  GgufFile file(path());
  std::vector<float> values(count);
  file.read(file.entries()[0], std::as_writable_bytes(std::span(values)));
  for (size_t i = 0; i < count; ++i) ASSERT_EQ(values[i], static_cast<float>(i));
}

TEST_F(GgufTest, PiecesMayBeginWithinBlocks) {
  GgufBuilder gguf;
  constexpr uint32_t kQ80 = 8;
  constexpr size_t kCount = 50016;
  gguf.tensor("w", {kCount}, kQ80, 0);
  std::vector<float> expected;
  for (size_t block = 0; block < kCount / 32; ++block) {
    append<uint16_t>(gguf.data, 0x3C00);  // a scale of 1
    for (size_t i = 0; i < 32; ++i) {
      const auto value = static_cast<int8_t>((block * 7 + i * 5) % 256 - 128);
      append(gguf.data, value);
      expected.push_back(static_cast<float>(value));
    }
  }
  write(gguf.bytes());
  GgufFile file(path());
  std::vector<float> values(kCount - 17);
  file.read(file.entries()[0], size_of(DType::kFloat32) * 17,
            std::as_writable_bytes(std::span(values)));
  expected.erase(expected.begin(), expected.begin() + 17);
  EXPECT_EQ(values, expected);
}

TEST_F(GgufTest, OtherTypesMayBeThereButAreNotRead) {
  GgufFile file(golden("gguf_types.gguf"));
  const WeightEntry* entry = file.find("Q8_K");
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->dtype, std::nullopt);
  std::array<std::byte, 4> out{};
  try {
    file.read(*entry, Bytes(0), out);
    ADD_FAILURE() << "no DataError";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("tensor 'Q8_K': is of type Q8_K"));
  }
}

TEST_F(GgufTest, ValuesOfEachType) {
  GgufFile file(golden("gguf_types.gguf"));
  EXPECT_EQ(file.count("u8"), 200);
  EXPECT_EQ(file.count("u16"), 60000);
  EXPECT_EQ(file.count("u32"), 4000000000);
  EXPECT_EQ(file.number("i8"), -100);
  EXPECT_EQ(file.number("i16"), -30000);
  EXPECT_EQ(file.number("i32"), -2000000000);
  EXPECT_EQ(file.number("i64"), -0x1p63);
  EXPECT_EQ(file.number("u64"), 0x1p64);
  EXPECT_EQ(file.number("f32"), 1e-5F);
  EXPECT_EQ(file.number("f64"), 0.1);
  EXPECT_TRUE(file.flag("bool"));
  EXPECT_EQ(file.text("text"), "ebb & flow \U0001F30A");
  EXPECT_THAT(file.texts("texts"), ElementsAre("a", "", "high tide"));
  EXPECT_THAT(file.numbers("numbers"), ElementsAre(3, -4, 5));
  EXPECT_TRUE(file.has("nested"));
  EXPECT_FALSE(file.has("none"));
}

TEST_F(GgufTest, ValuesOfOtherTypesAreErrorsThatNameTheKey) {
  GgufBuilder gguf;
  gguf.text("text", "x").size("size", 1);
  gguf.number("bool", GgufKind::kBool, uint8_t{2});
  gguf.number("below", GgufKind::kInt8, int8_t{-1});
  gguf.number("far", GgufKind::kUInt64, kHuge);
  ByteVector array;
  append(array, GgufKind::kText);
  append<uint64_t>(array, 0);
  gguf.value("texts", GgufKind::kArray, array);
  write(gguf.bytes());
  GgufFile file(path());
  const size_t size = gguf.bytes().size();
  const auto says = [&](const std::function<void()>& get) { return complaint(get, size); };
  EXPECT_THAT(says([&] { file.text("size"); }), HasSubstr("key 'size': is not text"));
  EXPECT_THAT(says([&] { file.count("text"); }), HasSubstr("key 'text': is not an integer"));
  EXPECT_THAT(says([&] { file.number("text"); }), HasSubstr("key 'text': is not a number"));
  EXPECT_THAT(says([&] { file.flag("size"); }), HasSubstr("key 'size': is not a bool"));
  EXPECT_THAT(says([&] { file.flag("bool"); }),
              HasSubstr("key 'bool': a bool that is neither"));
  EXPECT_THAT(says([&] { file.count("below"); }), HasSubstr("key 'below': is not from 0"));
  EXPECT_THAT(says([&] { file.count("far"); }), HasSubstr("key 'far': is not from 0"));
  EXPECT_THAT(says([&] { file.text("texts"); }), HasSubstr("key 'texts': is an array"));
  EXPECT_THAT(says([&] { file.texts("text"); }), HasSubstr("key 'text': is not an array"));
  EXPECT_TRUE(file.numbers("texts").empty());
  EXPECT_EQ(testing::data_error([&] { file.text("none"); }, path()), -1);
}

TEST_F(GgufTest, BothVersionsAreTheSame) {
  GgufBuilder gguf;
  gguf.size("general.alignment", 8).zeros("w", {2, 3}).zeros("scalar", {});
  gguf.alignment = 8;
  for (const uint32_t version : {2u, 3u}) {
    gguf.version = version;
    gguf.data.resize(64);
    write(gguf.bytes());
    const GgufFile file(path());
    EXPECT_EQ(file.find("w")->shape, (Shape{3, 2}));
    EXPECT_EQ(file.find("scalar")->shape.rank(), 0u);
  }
  write(GgufBuilder().bytes());
  EXPECT_TRUE(GgufFile(path()).entries().empty());
}

TEST_F(GgufTest, OtherVersionsAreRefused) {
  for (const uint32_t version : {0u, 1u, 4u}) {
    EXPECT_THAT(complaint(GgufBuilder{.version = version}.bytes()),
                HasSubstr("version " + std::to_string(version)));
  }
  EXPECT_THAT(complaint(GgufBuilder{.version = 3u << 24}.bytes()), HasSubstr("big-endian"));
  EXPECT_THAT(complaint(ByteVector(100)), HasSubstr("not a GGUF file"));
}

TEST_F(GgufTest, CutAnywhereIsAnError) {
  GgufBuilder gguf;
  gguf.text("key", "value").zeros("w", {8});
  const ByteVector whole = gguf.bytes();
  for (size_t n = 0; n < whole.size(); ++n) complaint(testing::first(whole, n));
}

TEST_F(GgufTest, CountsAndLengthsAreCheckedAgainstTheFile) {
  EXPECT_THAT(complaint(GgufBuilder{.value_count = kHuge}.bytes()),
              HasSubstr("9223372036854775808 values"));
  EXPECT_THAT(complaint(GgufBuilder{.tensor_count = kHuge}.bytes()),
              HasSubstr("9223372036854775808 tensors"));
  const auto with = [&](GgufKind kind, const std::vector<uint64_t>& numbers) {
    ByteVector bytes;
    if (kind == GgufKind::kArray) append(bytes, static_cast<uint32_t>(numbers[0]));
    append(bytes, numbers.back());
    return complaint(GgufBuilder().value("k", kind, bytes).bytes());
  };
  for (const uint64_t length : {uint64_t{1000}, kHuge, std::numeric_limits<uint64_t>::max()}) {
    const std::string says = "key 'k': " + std::to_string(length);
    EXPECT_THAT(with(GgufKind::kText, {length}), HasSubstr(says));
    for (const GgufKind element :
         {GgufKind::kUInt8, GgufKind::kFloat64, GgufKind::kText, GgufKind::kArray}) {
      EXPECT_THAT(with(GgufKind::kArray, {static_cast<uint64_t>(element), length}),
                  HasSubstr(says));
    }
  }
  EXPECT_THAT(with(GgufKind::kArray, {13, 0}), HasSubstr("key 'k': is of type 13"));
  EXPECT_THAT(complaint(GgufBuilder().value("k", GgufKind{13}, {}).bytes()),
              HasSubstr("key 'k': is of type 13"));
  EXPECT_THAT(complaint(GgufBuilder().text(std::string(65536, 'k'), "").bytes()),
              HasSubstr("65536 bytes of text"));
  EXPECT_THAT(complaint(GgufBuilder().text("", "").bytes()), HasSubstr("key: has no name"));
}

TEST_F(GgufTest, ArraysMayBeNestedALittle) {
  const auto nested = [](int depth) {
    ByteVector bytes;
    for (int i = 1; i < depth; ++i) {
      append(bytes, GgufKind::kArray);
      append<uint64_t>(bytes, 1);
    }
    append(bytes, GgufKind::kUInt8);
    append<uint64_t>(bytes, 1);
    bytes.push_back(7);
    return GgufBuilder().value("deep", GgufKind::kArray, bytes).bytes();
  };
  write(nested(4));
  EXPECT_TRUE(GgufFile(path()).has("deep"));
  EXPECT_THAT(complaint(nested(5)), HasSubstr("key 'deep': arrays within more than 4"));
  EXPECT_THAT(complaint(nested(1000000)), HasSubstr("key 'deep'"));
}

TEST_F(GgufTest, WhatIsWrongWithAKeyIsSaid) {
  EXPECT_THAT(complaint(GgufBuilder().size("a", 1).size("a", 1).bytes()),
              HasSubstr("key 'a': appears twice"));
  EXPECT_THAT(complaint(GgufBuilder().text("general.alignment", "32").bytes()),
              HasSubstr("key 'general.alignment': must be a uint32"));
  for (const uint32_t alignment : {0u, 3u, 33u}) {
    EXPECT_THAT(complaint(GgufBuilder().size("general.alignment", alignment).bytes()),
                HasSubstr("key 'general.alignment': " + std::to_string(alignment)));
  }
  EXPECT_THAT(complaint(GgufBuilder().size("a\x1b[0m", 1).size("a\x1b[0m", 1).bytes()),
              HasSubstr("key 'a?[0m'"));
}

TEST_F(GgufTest, WhatIsWrongWithATensorIsSaid) {
  const struct {
    std::vector<uint64_t> extents;
    uint32_t type;
    uint64_t offset;
    const char* says;
  } cases[] = {
      {{1, 1, 1, 1, 1}, 0, 0, "5 dimensions"},
      {{4, 0}, 0, 0, "a dimension of 0"},
      {{kHuge}, 0, 0, "a dimension of 9223372036854775808"},
      {{kHuge / 4}, 0, 0, "too large"},
      {{uint64_t{1} << 31, uint64_t{1} << 31}, 0, 0, "too large"},
      {{uint64_t{1} << 32, uint64_t{1} << 32}, 0, 0, "too large"},
      {{8}, 4, 0, "of type 4"},
      {{8}, 1000, 0, "of type 1000"},
      {{31}, 2, 0, "rows of 31 elements"},
      {{128, 2}, 12, 0, "rows of 128 elements"},
      {{8}, 0, 16, "offset 16 is not a multiple of 32"},
      {{8}, 0, 32, "32 bytes at offset 32 lie beyond"},
      {{9}, 0, 0, "36 bytes at offset 0 lie beyond"},
      {{8}, 0, std::numeric_limits<uint64_t>::max() - 31, "lie beyond"},
  };
  for (const auto& [extents, type, offset, says] : cases) {
    GgufBuilder gguf;
    gguf.tensor("w", extents, type, offset);
    gguf.data.resize(32);
    const std::string message = complaint(gguf.bytes());
    EXPECT_THAT(message, HasSubstr("tensor 'w': "));
    EXPECT_THAT(message, HasSubstr(says));
  }
  GgufBuilder twice;
  twice.zeros("w", {8}).zeros("w", {8});
  EXPECT_THAT(complaint(twice.bytes()), HasSubstr("tensor 'w': appears twice"));
  GgufBuilder overlap;
  overlap.zeros("v", {16}).tensor("w", {8}, 0, 32);
  EXPECT_THAT(complaint(overlap.bytes()), HasSubstr("tensor 'w': its data begin"));
  EXPECT_THAT(complaint(overlap.bytes()), HasSubstr("overlap"));
}

TEST_F(GgufTest, TensorsMayBeInAnyOrderAndHaveGaps) {
  GgufBuilder gguf;
  gguf.tensor("b", {8}, 0, 96).tensor("a", {8}, 0, 32);
  gguf.data.resize(160);
  write(gguf.bytes());
  const GgufFile file(path());
  EXPECT_EQ(file.entries()[0].name, "a");
  EXPECT_EQ(file.entries()[1].end, file.entries()[1].begin + 32);
}

}  // namespace
}  // namespace tidemark
