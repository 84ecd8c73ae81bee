// Event files, taken apart field by field.
#include "runtime/telemetry/tensorboard.h"

#include <gmock/gmock.h>

#include <unistd.h>

#include <bit>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "runtime/core/errors.h"

namespace tidemark {
namespace {

namespace fs = std::filesystem;

class TensorBoardTest : public ::testing::Test {
 protected:
  void SetUp() override { fs::remove_all(folder_); }
  void TearDown() override { fs::remove_all(folder_); }

  const std::string folder_ =
      (fs::temp_directory_path() / ("tidemark-board-" + std::to_string(::getpid()))).string();
};

template <class Word>
Word word_at(std::string_view bytes, size_t at) {
  Word word = 0;
  for (size_t i = 0; i < sizeof(Word); ++i) {
    word |= static_cast<Word>(static_cast<uint8_t>(bytes.at(at + i))) << (8 * i);
  }
  return word;
}

uint32_t unmasked(uint32_t crc) { return std::rotl(crc - 0xa282ead8, 15); }

// The events of a file, whose lengths and sums must be right.
std::vector<std::string> events_in(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  std::vector<std::string> events;
  for (size_t at = 0; at < bytes.size();) {
    const std::string_view length = std::string_view(bytes).substr(at, 8);
    const auto size = static_cast<size_t>(word_at<uint64_t>(length, 0));
    EXPECT_EQ(unmasked(word_at<uint32_t>(bytes, at + 8)), crc32c(length));
    events.push_back(bytes.substr(at + 12, size));
    EXPECT_EQ(unmasked(word_at<uint32_t>(bytes, at + 12 + size)), crc32c(events.back()));
    at += 16 + size;
  }
  return events;
}

// RFC 3720, B.4.
TEST(Crc32c, OfTheRfcsExamples) {
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43U);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U);
}

TEST_F(TensorBoardTest, WritesAnEventForEachStep) {
  TensorBoardWriter writer(folder_);
  EXPECT_TRUE(fs::path(writer.path()).filename().string().starts_with("events.out.tfevents."));
  writer.add(300, std::vector<Scalar>{{"train/loss", 1.5F}, {"b", -2.0F}});
  const std::vector<std::string> events = events_in(writer.path());
  ASSERT_EQ(events.size(), 2U);
  // wall_time, then file_version.
  EXPECT_EQ(events[0][0], '\x09');
  EXPECT_EQ(events[0].substr(9),
            "\x1a\x0d"
            "brain.Event:2");
  // wall_time, then step 300 as a varint, then a summary of two values.
  const std::string loss = std::string("\x0a\x0a") + "train/loss\x15" +
                           std::string("\0\0\xc0\x3f", 4),
                    other = std::string("\x0a\x01") + "b\x15" + std::string("\0\0\0\xc0", 4);
  const std::string summary = "\x0a" + std::string(1, static_cast<char>(loss.size())) + loss +
                              "\x0a" + std::string(1, static_cast<char>(other.size())) + other;
  EXPECT_EQ(events[1].substr(9),
            "\x10\xac\x02\x2a" + std::string(1, static_cast<char>(summary.size())) + summary);
}

TEST_F(TensorBoardTest, AFolderThatCannotBeMadeIsAnError) {
  fs::create_directories(folder_);
  const std::string file = folder_ + "/file";
  std::ofstream(file) << "x";
  EXPECT_THROW(TensorBoardWriter writer(file), DataError);
  EXPECT_THROW(TensorBoardWriter writer(file + "/below"), DataError);
}

}  // namespace
}  // namespace tidemark
