#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "models/data/dataset.h"
#include "runtime/core/input_file.h"
#include "tests/models/data/files.h"
#include "tests/models/data/samples.h"

namespace tidemark {
namespace {

using testing::ByteVector;
using testing::data_error;
using testing::read_all;
using testing::Sample;
using testing::TempFolder;

const std::string kDigits = TIDEMARK_DIGITS;

TEST(Digits, HasItsRowsAndClasses) {
  const auto data = open_digits(kDigits, Split::kAll);
  EXPECT_EQ(data->size(), 1797);
  EXPECT_EQ(data->classes(), 10);
  EXPECT_EQ(data->sample_shape(), (Shape{8, 8, 1}));
  std::array<int, 10> counts{};
  for (const Sample& sample : read_all(*data)) ++counts[static_cast<size_t>(sample.label)];
  EXPECT_THAT(counts, ::testing::ElementsAre(178, 182, 177, 183, 181, 182, 181, 179, 174, 180));
}

TEST(Digits, SplitIsFixedAndComplete) {
  const auto train = read_all(*open_digits(kDigits, Split::kTrain));
  const auto test = read_all(*open_digits(kDigits, Split::kTest));
  EXPECT_EQ(train.size(), 1437u);
  EXPECT_EQ(test.size(), 360u);
  std::vector<Sample> together = train;
  together.insert(together.end(), test.begin(), test.end());
  std::vector<Sample> all = read_all(*open_digits(kDigits, Split::kAll));
  EXPECT_NE(together, all) << "not shuffled";
  std::sort(together.begin(), together.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(together, all);
  EXPECT_EQ(test, read_all(*open_digits(kDigits, Split::kTest)));
  std::map<int64_t, int> counts;
  for (const Sample& sample : test) ++counts[sample.label];
  EXPECT_EQ(counts.size(), 10u);
  for (const auto& [label, count] : counts) EXPECT_GT(count, 20) << label;
}

TEST(Digits, IsNormalised) {
  double sum = 0, squares = 0, n = 0;
  for (const Sample& sample : read_all(*open_digits(kDigits, Split::kAll))) {
    for (float v : sample.pixels) sum += v, squares += v * v, ++n;
  }
  EXPECT_NEAR(sum / n, 0.0, 1e-3);
  EXPECT_NEAR(squares / n, 1.0, 1e-3);
}

TEST(Digits, ResizesAndRepeatsChannels) {
  const auto small = open_digits(kDigits, Split::kAll);
  const auto large = open_digits(kDigits, Split::kAll, {.size = 32, .channels = 3});
  ASSERT_EQ(large->sample_shape(), (Shape{32, 32, 3}));
  std::vector<float> in(64), out(32 * 32 * 3);
  int64_t label = 0, same_label = 0;
  small->read(5, 0, in, label);
  large->read(5, 0, out, same_label);
  EXPECT_EQ(label, same_label);
  for (size_t i = 0; i < out.size(); i += 3) {
    ASSERT_EQ(out[i], out[i + 1]);
    ASSERT_EQ(out[i], out[i + 2]);
  }
  // Enlarging by 4, output 6 lies at 1.125 in source pixels: 7/8 of one, 1/8 of the next.
  auto at = [&](size_t y, size_t x) { return in[y * 8 + x]; };
  const float row1 = 0.875f * at(1, 1) + 0.125f * at(1, 2);
  const float row2 = 0.875f * at(2, 1) + 0.125f * at(2, 2);
  EXPECT_NEAR(out[(6 * 32 + 6) * 3], 0.875f * row1 + 0.125f * row2, 1e-5);
}

TEST(Digits, PlainTextAndWindowsLineEndsAreFine) {
  const TempFolder folder;
  ByteVector text = read_whole_file(kDigits, 1 << 20).bytes;
  const std::string plain = folder.write("plain.csv", text);
  EXPECT_EQ(read_all(*open_digits(plain, Split::kTest)),
            read_all(*open_digits(kDigits, Split::kTest)));
  ByteVector windows;
  for (uint8_t c : text) {
    if (c == '\n') windows.push_back('\r');
    windows.push_back(c);
  }
  windows.pop_back();  // nor is the last line's end needed
  windows.pop_back();
  EXPECT_EQ(open_digits(folder.write("windows.csv", windows), Split::kAll)->size(), 1797);
}

TEST(Digits, BadLineIsNamedByOffset) {
  const TempFolder folder;
  const ByteVector text = read_whole_file(kDigits, 1 << 20).bytes;
  const auto line_end = std::find(text.begin() + 5000, text.end(), '\n');
  const auto line = line_end - text.begin() + 1;
  auto with = [&](const std::string& instead) {
    ByteVector bad = text;
    std::copy(instead.begin(), instead.end(), bad.begin() + line);
    return folder.write("bad.csv", bad);
  };
  for (const char* bad : {"x", ",", "17,", "999", "-1", "0 ", "\n", "0\0"}) {
    const std::string path = with(std::string(bad, 2));
    EXPECT_EQ(data_error([&] { open_digits(path, Split::kTrain); }, path), line) << bad;
  }
  ByteVector label = text;
  label.insert(label.begin() + (line_end - text.begin()), '0');  // labels such as 80
  const std::string path = folder.write("label.csv", label);
  EXPECT_LT(data_error([&] { open_digits(path, Split::kTrain); }, path), line);
}

TEST(Digits, CutAnywhereIsAnError) {
  const TempFolder folder;
  const ByteVector text = read_whole_file(kDigits, 1 << 20).bytes;
  for (size_t n : {size_t{0}, size_t{1}, size_t{129}, text.size() / 2, text.size() - 2}) {
    const std::string path = folder.write("cut.csv", testing::first(text, n));
    const int64_t offset = data_error([&] { open_digits(path, Split::kTest); }, path);
    EXPECT_LE(offset, static_cast<int64_t>(n));
    EXPECT_GE(offset, static_cast<int64_t>(n) - 200);
  }
  ByteVector longer = text;
  longer.insert(longer.end(), text.begin(), std::find(text.begin(), text.end(), '\n') + 1);
  const std::string path = folder.write("longer.csv", longer);
  EXPECT_EQ(data_error([&] { open_digits(path, Split::kTest); }, path),
            static_cast<int64_t>(longer.size()));
}

TEST(Digits, DamagedGzipIsAnError) {
  const TempFolder folder;
  const ByteVector packed = testing::read_bytes(kDigits);
  for (size_t n = 2; n < packed.size(); n += n < 40 || n + 40 > packed.size() ? 1 : 4999) {
    const std::string path = folder.write("cut.gz", testing::first(packed, n));
    EXPECT_EQ(data_error([&] { open_digits(path, Split::kTest); }, path),
              static_cast<int64_t>(n));
  }
  for (size_t at : {size_t{2}, packed.size() / 2, packed.size() - 6, packed.size() - 1}) {
    ByteVector bad = packed;
    bad[at] ^= 0x40;
    const std::string path = folder.write("flipped.gz", bad);
    EXPECT_LE(data_error([&] { open_digits(path, Split::kTest); }, path),
              2 * static_cast<int64_t>(packed.size()) * 10);
  }
  ByteVector trailing = packed;
  trailing.push_back('x');
  const std::string path = folder.write("trailing.gz", trailing);
  data_error([&] { open_digits(path, Split::kTest); }, path);
}

TEST(Digits, MissingFileAndFolderAreErrors) {
  const TempFolder folder;
  const std::string path = folder.path() + "/none.csv";
  EXPECT_EQ(data_error([&] { open_digits(path, Split::kTrain); }, path), -1);
  EXPECT_EQ(data_error([&] { open_digits(folder.path(), Split::kTrain); }, folder.path()), -1);
  EXPECT_THROW(open_digits(kDigits, Split::kTrain, {.channels = 2}), UsageError);
  EXPECT_THROW(open_digits(kDigits, Split::kTrain, {.size = -1}), UsageError);
}

}  // namespace
}  // namespace tidemark
