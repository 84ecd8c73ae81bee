#include "models/checkpoint/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "models/checkpoint/halves.h"
#include "models/checkpoint/safetensors_header.h"
#include "runtime/core/errors.h"
#include "tests/models/data/files.h"

namespace tidemark {
namespace {

using testing::ByteVector;
using testing::data_error;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TempFolder;

ByteVector file_of(const std::string& header, const ByteVector& data = {}) {
  ByteVector bytes;
  for (int shift = 0; shift < 64; shift += 8) {
    bytes.push_back(static_cast<uint8_t>(uint64_t{header.size()} >> shift));
  }
  bytes.insert(bytes.end(), header.begin(), header.end());
  bytes.insert(bytes.end(), data.begin(), data.end());
  return bytes;
}

class SafetensorsTest : public ::testing::Test {
 protected:
  std::string path() const { return folder_.path() + "/a.safetensors"; }
  std::string write(const ByteVector& bytes) { return folder_.write("a.safetensors", bytes); }
  // The complaint about such a file.
  std::string complaint(const ByteVector& bytes) {
    write(bytes);
    try {
      const SafetensorsFile file(path());
    } catch (const DataError& error) {
      EXPECT_EQ(error.file(), path());
      EXPECT_GE(error.offset(), 0);
      EXPECT_LE(error.offset(), static_cast<int64_t>(bytes.size()) + 8) << error.what();
      EXPECT_LT(std::string(error.what()).size(), 1000u);
      return error.what();
    }
    ADD_FAILURE() << "no DataError";
    return "";
  }
  std::string complaint(const std::string& header, size_t data) {
    return complaint(file_of(header, ByteVector(data)));
  }
  template <class T>
  std::vector<T> read(SafetensorsFile& file, const std::string& name) {
    const WeightEntry* entry = file.find(name);
    EXPECT_NE(entry, nullptr) << name;
    std::vector<T> values(static_cast<size_t>(entry->shape.elements()));
    file.read(*entry, std::as_writable_bytes(std::span(values)));
    return values;
  }

  TempFolder folder_;
};

// As other libraries write it: any order in the header, spaces behind it.
TEST_F(SafetensorsTest, ReadsTheStandardForm) {
  ByteVector data(16);
  const float a[] = {1, -2.5F};
  const int64_t b = -3;
  std::memcpy(data.data(), a, 8);
  std::memcpy(data.data() + 8, &b, 8);
  write(file_of(R"({"__metadata__":{"format":"pt"},)"
                R"("b":{"dtype":"I64","shape":[1],"data_offsets":[8,16]},)"
                R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}   )",
                data));
  SafetensorsFile file(path());
  EXPECT_EQ(file.metadata().at("format"), "pt");
  ASSERT_EQ(file.entries().size(), 2u);
  EXPECT_EQ(file.entries()[0].name, "a") << "in the order of the data";
  EXPECT_EQ(file.entries()[1].shape, (Shape{1}));
  EXPECT_THAT(read<float>(file, "a"), ElementsAre(1, -2.5F));
  EXPECT_THAT(read<int64_t>(file, "b"), ElementsAre(-3));
  EXPECT_EQ(file.find("c"), nullptr);
}

TEST_F(SafetensorsTest, WritesAndReadsEveryType) {
  const std::vector<SafetensorsSpec> specs{{"f \"quoted\" \u00e9", DType::kFloat32, {2, 2}},
                                           {"i64", DType::kInt64, {1}},
                                           {"i32", DType::kInt32, {2}},
                                           {"u8", DType::kUInt8, {3}},
                                           {"bool", DType::kBool, {2}},
                                           {"scalar", DType::kFloat32, {}},
                                           {"empty", DType::kFloat32, {0, 5}}};
  const float f[] = {1, 2, 3, std::numeric_limits<float>::infinity()};
  const int64_t i64 = std::numeric_limits<int64_t>::min();
  const int32_t i32[] = {-1, 2};
  const uint8_t u8[] = {0, 255, 7}, flags[] = {1, 0};
  const float scalar = 42;
  {
    SafetensorsWriter writer(path(), specs, {{"key", "line\nbreak"}});
    EXPECT_EQ(writer.header().size() % 8, 0u);
    writer.write(std::as_bytes(std::span(f)).first(5));
    writer.write(std::as_bytes(std::span(f)).subspan(5));
    writer.write(std::as_bytes(std::span(&i64, 1)));
    writer.write(std::as_bytes(std::span(i32)));
    writer.write(std::as_bytes(std::span(u8)));
    writer.write(std::as_bytes(std::span(flags)));
    EXPECT_THROW(writer.commit(), UsageError) << "the last one is still to come";
    writer.write(std::as_bytes(std::span(&scalar, 1)));
    writer.commit();
  }
  SafetensorsFile file(path());
  EXPECT_EQ(file.metadata(), (WeightMetadata{{"key", "line\nbreak"}}));
  ASSERT_EQ(file.entries().size(), specs.size());
  EXPECT_THAT(read<float>(file, specs[0].name), ::testing::ElementsAreArray(f));
  EXPECT_THAT(read<int64_t>(file, "i64"), ElementsAre(i64));
  EXPECT_THAT(read<int32_t>(file, "i32"), ElementsAre(-1, 2));
  EXPECT_THAT(read<uint8_t>(file, "u8"), ElementsAre(0, 255, 7));
  EXPECT_THAT(read<uint8_t>(file, "bool"), ElementsAre(1, 0));
  EXPECT_THAT(read<float>(file, "scalar"), ElementsAre(42));
  EXPECT_TRUE(read<float>(file, "empty").empty());
  EXPECT_EQ(file.find("empty")->shape, (Shape{0, 5}));
}

TEST_F(SafetensorsTest, NoTensorsAndNoMetadataAreFine) {
  SafetensorsWriter(path(), {}, {}).commit();
  EXPECT_TRUE(SafetensorsFile(path()).entries().empty());
  write(file_of("{}"));
  EXPECT_TRUE(SafetensorsFile(path()).entries().empty());
}

TEST(Halves, BecomeFloats) {
  EXPECT_EQ(half_to_float(0x3C00), 1);
  EXPECT_EQ(half_to_float(0xC248), -3.140625F);
  EXPECT_EQ(half_to_float(0x7BFF), 65504);
  EXPECT_EQ(half_to_float(0x0001), 0x1p-24F) << "the smallest subnormal";
  EXPECT_EQ(half_to_float(0x83FF), -0x1.ff8p-15F) << "the largest subnormal";
  EXPECT_EQ(half_to_float(0x0400), 0x1p-14F) << "the smallest normal";
  EXPECT_EQ(std::bit_cast<uint32_t>(half_to_float(0x8000)), 0x80000000) << "negative zero";
  EXPECT_EQ(half_to_float(0xFC00), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(half_to_float(0x7E00)));
  EXPECT_EQ(bfloat16_to_float(0x3F80), 1);
  EXPECT_EQ(bfloat16_to_float(0xC049), -3.140625F);
  EXPECT_TRUE(std::isnan(bfloat16_to_float(0x7FC0)));
  for (uint32_t bits = 0; bits < 0x7C00; ++bits) {
    const float low = half_to_float(static_cast<uint16_t>(bits));
    ASSERT_LT(low, half_to_float(static_cast<uint16_t>(bits + 1))) << bits;
  }
}

TEST_F(SafetensorsTest, HalvesAreReadAsFloats) {
  constexpr size_t kMany = 100000;  // more than one piece
  ByteVector data;
  for (size_t i = 0; i < 2 * kMany; ++i) {
    data.push_back(0x00);
    data.push_back(i < kMany ? 0x3C : 0x40);
  }
  write(file_of(R"({"h":{"dtype":"F16","shape":[100000],"data_offsets":[0,200000]},)"
                R"("b":{"dtype":"BF16","shape":[100000],"data_offsets":[200000,400000]}})",
                data));
  SafetensorsFile file(path());
  EXPECT_EQ(read<float>(file, "h"), std::vector<float>(kMany, 1));
  EXPECT_EQ(read<float>(file, "b"), std::vector<float>(kMany, 2));
}

TEST_F(SafetensorsTest, OtherTypesMayBeThereButAreNotRead) {
  write(file_of(R"({"d":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}})", ByteVector(8)));
  SafetensorsFile file(path());
  EXPECT_EQ(file.find("d")->dtype, std::nullopt);
  std::array<std::byte, 8> out{};
  const int64_t at = data_error([&] { file.read(*file.find("d"), out); }, path());
  EXPECT_EQ(at, file.data_begin());
}

TEST_F(SafetensorsTest, BoolsAreCheckedWhenRead) {
  write(file_of(R"({"b":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]}})", {1, 0, 2}));
  SafetensorsFile file(path());
  std::array<std::byte, 3> out{};
  EXPECT_EQ(data_error([&] { file.read(*file.find("b"), out); }, path()),
            file.data_begin() + 2);
}

TEST_F(SafetensorsTest, LengthsAreCheckedAgainstTheFile) {
  for (size_t n = 0; n < 8; ++n) EXPECT_THAT(complaint(ByteVector(n)), HasSubstr("truncated"));
  EXPECT_THAT(complaint(ByteVector(8)), HasSubstr("not a JSON object"));
  for (const uint64_t length : {uint64_t{1}, uint64_t{1} << 32, uint64_t{1} << 62,
                                std::numeric_limits<uint64_t>::max()}) {
    ByteVector bytes(8);
    std::memcpy(bytes.data(), &length, 8);
    EXPECT_THAT(complaint(bytes), HasSubstr("a header of " + std::to_string(length)));
  }
}

TEST_F(SafetensorsTest, CutAnywhereIsAnError) {
  const ByteVector whole =
      file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", ByteVector(8));
  for (size_t n = 0; n < whole.size(); ++n) complaint(testing::first(whole, n));
  ByteVector longer = whole;
  longer.push_back(0);
  EXPECT_THAT(complaint(longer), HasSubstr("1 more bytes"));
}

TEST_F(SafetensorsTest, WhatIsWrongIsSaidWithTheTensor) {
  const auto one = [](const std::string& members) { return "{\"w\":{" + members + "}}"; };
  const auto f32 = [&](const std::string& shape, const std::string& offsets) {
    return one(R"("dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + offsets);
  };
  const struct {
    std::string header;
    const char* says;
  } cases[] = {
      {R"([])", "not a JSON object"},
      {R"({"w":5})", "found the number 5"},
      {R"({"w":[]})", "found an array"},
      {R"({"w":null})", "found null"},
      {R"({"__metadata__":5})", "found the number 5"},
      {R"({"__metadata__":{"a":5}})", "found the number 5"},
      {R"({"__metadata__":{"a":{}}})", "found an object"},
      {R"({"__metadata__":{"a":"1","a":"2"}})", "twice"},
      {one(R"("dtype":"F32","shape":[1])"), "'w': no data_offsets"},
      {one(R"("shape":[1],"data_offsets":[0,4])"), "'w': no dtype"},
      {one(R"("dtype":"F32","data_offsets":[0,4])"), "'w': no shape"},
      {one(R"("dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4])"), "twice"},
      {one(R"("dtype":"F33","shape":[1],"data_offsets":[0,4])"), "unknown dtype 'F33'"},
      {one(R"("dtype":4,"shape":[1],"data_offsets":[0,4])"), "'w': found the number 4"},
      {one(R"("dtype":["F32"],"shape":[1],"data_offsets":[0,4])"), "'w': found an array"},
      {f32("1", "[0,4]"), "'w': found the number 1"},
      {f32("[[1]]", "[0,4]"), "'w': found an array"},
      {f32(R"(["1"])", "[0,4]"), "'w': found text"},
      {f32("[-1]", "[0,4]"), "'w': found the number -1"},
      {f32("[1.0]", "[0,4]"), "'w': found the number 1.0"},
      {f32("[1e999]", "[0,4]"), "'w'"},
      {f32("[1,1,1,1,1,1,1]", "[0,4]"), "more than 6"},
      {f32("[2]", "[0,4]"), "takes 8 bytes"},
      {f32("[0]", "[0,4]"), "takes 0 bytes"},
      {f32("[1]", "[0]"), "1 numbers"},
      {f32("[1]", "[0,4,8]"), "more than two"},
      {f32("[1]", "[4,0]"), "data_offsets [4, 0)"},
      {f32("[2]", "[0,8]"), "within the 4 bytes"},
      {f32("[9223372036854775807]", "[0,4]"), "too large"},
      {f32("[9223372036854775808]", "[0,4]"), "too large"},
      {f32("[4294967296,4294967296]", "[0,4]"), "too large"},
      {one(R"("dtype":"U8","shape":[0,4294967296,4294967296],"data_offsets":[0,0])"),
       "too large"},
      {one(R"("dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1)"), "unknown key 'x'"},
      {R"({"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
       R"("w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
       "'w' appears twice"},
      {R"({"v":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
       R"("w":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
       "'w': its data begin at byte"},
      {R"({"v":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
       R"("w":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
       "there is a gap"},
      {R"({"w":{"dtype":"U8","shape":[3],"data_offsets":[1,4]}})", "there is a gap"},
      {R"({"w":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})", "1 more bytes"},
      {R"({})", "4 more bytes"},
      {R"({} x)", "parse error"},
      {R"({"w)", "parse error"},
      {"{\"\xFF\":{}}", "parse error"},
  };
  for (const auto& [header, says] : cases) {
    EXPECT_THAT(complaint(header, 4), HasSubstr(says)) << header;
  }
}

TEST_F(SafetensorsTest, OverlapsAreCalledSo) {
  EXPECT_THAT(complaint(R"({"v":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                        R"("w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
                        4),
              HasSubstr("overlap"));
}

TEST_F(SafetensorsTest, DeepOrHugeNonsenseIsRefused) {
  complaint("{\"w\":" + std::string(1000000, '['), 0);
  std::string deep = "{";
  for (int i = 0; i < 100000; ++i) deep += "\"x\":{";
  complaint(deep, 0);
  complaint("{\"" + std::string(1000000, 'a') + "\":5}", 0);
  std::string numbers = R"({"w":{"shape":[1)";
  for (int i = 0; i < 100000; ++i) numbers += ",1";
  EXPECT_THAT(complaint(numbers, 0), HasSubstr("more than 6"));
}

TEST_F(SafetensorsTest, MissingFilesAndFoldersAreErrors) {
  const std::string missing = folder_.path() + "/none";
  EXPECT_EQ(data_error([&] { SafetensorsFile{missing}; }, missing), -1);
  EXPECT_EQ(data_error([&] { SafetensorsFile{folder_.path()}; }, folder_.path()), -1);
}

TEST_F(SafetensorsTest, WritersRefuseBadNames) {
  const SafetensorsSpec a{"a", DType::kFloat32, {1}};
  EXPECT_THROW(SafetensorsWriter(path(), {a, a}, {}), UsageError);
  EXPECT_THROW(SafetensorsWriter(path(), {{"__metadata__", DType::kFloat32, {1}}}, {}),
               UsageError);
  EXPECT_THROW(SafetensorsWriter(path(), {{"\xFF", DType::kFloat32, {1}}}, {}), UsageError);
  EXPECT_FALSE(std::filesystem::exists(path() + kPartialSuffix));
}

}  // namespace
}  // namespace tidemark
