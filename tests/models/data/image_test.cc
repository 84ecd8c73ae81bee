#include "models/data/image.h"

#include <gtest/gtest.h>
#include <png.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "tests/models/data/files.h"

namespace tidemark {
namespace {

using testing::ByteVector;
using testing::data_error;
using testing::first;
using testing::jpeg_file;
using testing::JpegKind;
using testing::picture;
using testing::png_file;
using testing::TempFolder;

constexpr int64_t kMost = 1 << 20;

int largest_difference(const Image& a, const Image& b) {
  EXPECT_EQ(a.height, b.height);
  EXPECT_EQ(a.width, b.width);
  EXPECT_EQ(a.channels, b.channels);
  if (a.pixels.size() != b.pixels.size()) return 256;
  int largest = 0;
  for (size_t i = 0; i < a.pixels.size(); ++i) {
    largest = std::max(largest, std::abs(a.pixels[i] - b.pixels[i]));
  }
  return largest;
}

TEST(Image, DecodesEachKindOfJpeg) {
  const TempFolder folder;
  const Image grey = picture(37, 50, 1), colour = picture(37, 50, 3);
  const std::string a = folder.write("a", jpeg_file(grey, JpegKind::kGrey));
  const std::string b = folder.write("b", jpeg_file(colour, JpegKind::kColour));
  const std::string c = folder.write("c", jpeg_file(colour, JpegKind::kProgressive));
  EXPECT_LE(largest_difference(decode_image(a, kMost), grey), 6);
  EXPECT_LE(largest_difference(decode_image(b, kMost), colour), 12);
  EXPECT_LE(largest_difference(decode_image(c, kMost), colour), 12);
  for (const std::string& path : {a, b, c}) {
    const ImageInfo info = check_image(path, kMost);
    EXPECT_EQ(info.height, 37);
    EXPECT_EQ(info.width, 50);
    EXPECT_GT(info.decode_bytes, Bytes(37 * 50));
  }
}

// Adobe's files hold 255 - ink; R = (255 - cyan) (255 - black) / 255.
TEST(Image, ConvertsAdobeCmyk) {
  const TempFolder folder;
  const Image inks = picture(24, 24, 4);
  Image expected{24, 24, 3, {}};
  for (size_t i = 0; i < inks.pixels.size(); i += 4) {
    for (size_t c = 0; c < 3; ++c) {
      expected.pixels.push_back(
          static_cast<uint8_t>(inks.pixels[i + c] * inks.pixels[i + 3] / 255));
    }
  }
  ByteVector bytes = jpeg_file(inks, JpegKind::kAdobeCmyk);
  const std::string path = folder.write("a.jpg", bytes);
  EXPECT_LE(largest_difference(decode_image(path, kMost), expected), 8);

  // Without Adobe's marker (FF EE) the inks are as they read.
  const auto marker = std::search_n(bytes.begin(), bytes.end(), 1, uint8_t{0xee});
  ASSERT_EQ(*(marker - 1), 0xff);
  bytes.erase(marker - 1, marker + 1 + 14);
  for (size_t i = 0, j = 0; i < inks.pixels.size(); i += 4) {
    for (size_t c = 0; c < 3; ++c) {
      expected.pixels[j++] =
          static_cast<uint8_t>((255 - inks.pixels[i + c]) * (255 - inks.pixels[i + 3]) / 255);
    }
  }
  EXPECT_LE(largest_difference(decode_image(folder.write("b.jpg", bytes), kMost), expected), 8);
}

TEST(Image, DecodesEachKindOfPng) {
  const TempFolder folder;
  auto decode = [&](const ByteVector& bytes) {
    const std::string path = folder.write("x.png", bytes);
    check_image(path, kMost);
    return decode_image(path, kMost);
  };
  const Image grey = picture(11, 13, 1), colour = picture(11, 13, 3);
  EXPECT_EQ(largest_difference(decode(png_file(grey)), grey), 0);
  EXPECT_EQ(largest_difference(decode(png_file(colour)), colour), 0);

  // Two pixels a byte: 0 and 15, then 5 and 10, which are 0, 255, 85, 170 of 255.
  const Image bits = decode(png_file(1, 4, {PNG_COLOR_TYPE_GRAY, 4}, {{0x0f, 0x5a}}));
  EXPECT_EQ(bits.channels, 1);
  EXPECT_EQ(bits.pixels, (ByteVector{0, 255, 85, 170}));
  EXPECT_EQ(decode(png_file(1, 8, {PNG_COLOR_TYPE_GRAY, 1}, {{0xa0}})).pixels,
            (ByteVector{255, 0, 255, 0, 0, 0, 0, 0}));
  EXPECT_EQ(
      decode(png_file(1, 2, {PNG_COLOR_TYPE_GRAY, 16}, {{0x80, 0x80, 0xff, 0xff}})).pixels,
      (ByteVector{128, 255}));

  for (bool transparent : {false, true}) {
    const Image palette = decode(
        png_file(2, 2, {PNG_COLOR_TYPE_PALETTE, 8, false, transparent}, {{0, 1}, {2, 70}}));
    EXPECT_EQ(palette.channels, 3);
    EXPECT_EQ(palette.pixels, (ByteVector{0, 0, 0, 1, 2, 3, 2, 4, 6, 70, 140, 210}));
  }
  EXPECT_EQ(
      decode(png_file(1, 2, {PNG_COLOR_TYPE_RGB_ALPHA, 8}, {{1, 2, 3, 4, 5, 6, 7, 8}})).pixels,
      (ByteVector{1, 2, 3, 5, 6, 7}));
  EXPECT_EQ(decode(png_file(1, 2, {PNG_COLOR_TYPE_GRAY_ALPHA, 8}, {{1, 0, 3, 255}})).pixels,
            (ByteVector{1, 3}));

  std::vector<ByteVector> rows;
  for (int64_t y = 0; y < colour.height; ++y) {
    rows.emplace_back(colour.pixels.begin() + y * 39, colour.pixels.begin() + (y + 1) * 39);
  }
  EXPECT_EQ(
      largest_difference(decode(png_file(11, 13, {PNG_COLOR_TYPE_RGB, 8, true}, rows)), colour),
      0);
}

std::vector<ByteVector> sample_files() {
  return {jpeg_file(picture(20, 30, 1), JpegKind::kGrey),
          jpeg_file(picture(20, 30, 3), JpegKind::kColour),
          jpeg_file(picture(20, 30, 3), JpegKind::kProgressive),
          jpeg_file(picture(20, 30, 4), JpegKind::kAdobeCmyk),
          png_file(picture(20, 30, 3)),
          png_file(9, 8, {PNG_COLOR_TYPE_PALETTE, 8, true, true},
                   std::vector<ByteVector>(9, ByteVector{0, 1, 2, 3, 4, 5, 6, 7}))};
}

TEST(Image, EveryTruncationIsAnErrorAlreadyWhenChecked) {
  const TempFolder folder;
  for (const ByteVector& file : sample_files()) {
    for (size_t n = 0; n < file.size(); ++n) {
      const std::string path = folder.write("cut", first(file, n));
      const auto most = static_cast<int64_t>(n);
      EXPECT_LE(data_error([&] { check_image(path, kMost); }, path), most) << n;
      EXPECT_LE(data_error([&] { decode_image(path, kMost); }, path), most) << n;
    }
  }
}

// Whatever a bit flip makes of a file, it decodes or it is a DataError. PNG's checksums see all
// of them; in a JPEG most only change the picture.
TEST(Image, NoFlippedByteDoesHarm) {
  const TempFolder folder;
  constexpr int64_t kFew = 4096;  // keeps images of a flipped size small
  size_t errors = 0, tries = 0;
  for (const ByteVector& file : sample_files()) {
    const bool png = file[0] == 0x89;
    for (size_t at = 0; at < file.size(); ++at) {
      for (uint8_t mask : {uint8_t{0x01}, uint8_t{0x80}, uint8_t{0xff}}) {
        ByteVector bad = file;
        bad[at] ^= mask;
        const std::string path = folder.write("flipped", bad);
        ++tries;
        try {
          check_image(path, kFew);
          decode_image(path, kFew);
          EXPECT_FALSE(png && at < 33) << "header byte " << at;
        } catch (const DataError& error) {
          ++errors;
          EXPECT_EQ(error.file(), path);
          EXPECT_LE(error.offset(), static_cast<int64_t>(bad.size())) << error.what();
        }
      }
    }
  }
  EXPECT_GT(errors, tries / 20);
}

TEST(Image, WhatIsNoImageIsAnError) {
  const TempFolder folder;
  for (const ByteVector& bytes :
       {ByteVector{}, ByteVector{0xff}, ByteVector{'G', 'I', 'F', '8', '9'},
        ByteVector{0xff, 0xd8}, ByteVector{0x89, 'P', 'N', 'G'}}) {
    const std::string path = folder.write("x", bytes);
    data_error([&] { check_image(path, kMost); }, path);
    data_error([&] { decode_image(path, kMost); }, path);
  }
}

TEST(Image, TooManyPixelsAreRefusedByTheHeader) {
  const TempFolder folder;
  const std::string jpeg = folder.write("a", jpeg_file(picture(20, 30, 3), JpegKind::kColour));
  const std::string png = folder.write("b", png_file(picture(20, 30, 3)));
  for (const std::string& path : {jpeg, png}) {
    EXPECT_NO_THROW(check_image(path, 600));
    data_error([&] { check_image(path, 599); }, path);
    data_error([&] { decode_image(path, 599); }, path);
  }
}

TEST(Resample, WeightsAreOneAndConstantStaysConstant) {
  const ByteVector source(static_cast<size_t>(17 * 23 * 3), 77);
  for (int64_t size : {1, 5, 17, 40}) {
    const ResampleAxis rows(17, 2.25, 12.5, size), columns(23, 0, 23, size, true);
    for (int64_t i = 0; i < size; ++i) {
      const auto weights = rows.taps(i).weights;
      EXPECT_NEAR(std::accumulate(weights.begin(), weights.end(), 0.0), 1.0, 1e-6);
    }
    std::vector<float> out(static_cast<size_t>(size * size * 3));
    resample(source, 23, 3, rows, columns, out);
    for (float v : out) ASSERT_NEAR(v, 77.0f, 1e-3);
  }
}

TEST(Resample, SameSizeCopiesAndMirrors) {
  const ByteVector source{1, 2, 3, 4, 5, 6};
  std::vector<float> out(6);
  const ResampleAxis rows(2, 0, 2, 2);
  resample(source, 3, 1, rows, ResampleAxis(3, 0, 3, 3), out);
  EXPECT_EQ(out, (std::vector<float>{1, 2, 3, 4, 5, 6}));
  resample(source, 3, 1, rows, ResampleAxis(3, 0, 3, 3, true), out);
  EXPECT_EQ(out, (std::vector<float>{3, 2, 1, 6, 5, 4}));
}

// Halving takes the triangle 1/8, 3/8, 3/8, 1/8, cut off and rescaled at the edge.
TEST(Resample, ShrinkingUsesEveryPixel) {
  const ByteVector source{0, 80, 160, 240};
  std::vector<float> out(2);
  resample(source, 4, 1, ResampleAxis(1, 0, 1, 1), ResampleAxis(4, 0, 4, 2), out);
  EXPECT_NEAR(out[0], (3 * 0 + 3 * 80 + 1 * 160) / 7.0, 1e-4);
  EXPECT_NEAR(out[1], (1 * 80 + 3 * 160 + 3 * 240) / 7.0, 1e-4);
}

}  // namespace
}  // namespace tidemark
