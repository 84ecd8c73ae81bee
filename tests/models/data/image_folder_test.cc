#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <sstream>
#include <string>

#include "models/data/dataset.h"
#include "tests/models/data/files.h"
#include "tests/models/data/samples.h"

namespace tidemark {
namespace {

using testing::ByteVector;
using testing::data_error;
using testing::jpeg_file;
using testing::JpegKind;
using testing::picture;
using testing::png_file;
using testing::read_all;
using testing::read_sample;
using testing::Sample;
using testing::TempFolder;

Image plain(uint8_t red, uint8_t green, uint8_t blue, int64_t height = 12, int64_t width = 16) {
  Image image{height, width, 3, {}};
  for (int64_t i = 0; i < height * width; ++i) {
    image.pixels.insert(image.pixels.end(), {red, green, blue});
  }
  return image;
}

// Samples in any order.
std::set<Sample> set_of(const Dataset& data) {
  const std::vector<Sample> all = read_all(data);
  return {all.begin(), all.end()};
}

TEST(ImageFolder, NumbersClassesBySortedName) {
  const TempFolder folder;
  folder.write("zebra/deep/one.JPEG", jpeg_file(plain(200, 0, 0), JpegKind::kColour));
  folder.write("ant/two.png", png_file(plain(0, 200, 0)));
  folder.write("ant/really-a-jpeg.png", jpeg_file(plain(0, 0, 200), JpegKind::kColour));
  folder.write("ant/.hidden.png", {1, 2, 3});
  folder.write("ant/Thumbs.db", {1, 2, 3});
  folder.write("notes.png", {1, 2, 3});
  const auto data = open_image_folder(folder.path(), Split::kAll, {.image_size = 8});
  EXPECT_EQ(data->classes(), 2);
  ASSERT_EQ(data->size(), 3);
  ASSERT_EQ(data->sample_shape(), (Shape{8, 8, 3}));
  const Sample jpeg = read_sample(*data, 0), green = read_sample(*data, 1),
               red = read_sample(*data, 2);
  EXPECT_EQ(jpeg.label, 0);
  EXPECT_EQ(green.label, 0);
  EXPECT_EQ(red.label, 1);
  EXPECT_NEAR(green.pixels[0], (0 - 0.485) / 0.229, 1e-4);
  EXPECT_NEAR(green.pixels[1], (200 / 255.0 - 0.456) / 0.224, 1e-4);
  EXPECT_NEAR(green.pixels[2], (0 - 0.406) / 0.225, 1e-4);
}

TEST(ImageFolder, GreyAndColourMeetEitherChannelCount) {
  const TempFolder folder;
  folder.write("a/grey.png", png_file(Image{4, 4, 1, ByteVector(16, 100)}));
  folder.write("a/red.png", png_file(plain(255, 0, 0)));
  const auto three = open_image_folder(folder.path(), Split::kAll, {.image_size = 4});
  EXPECT_NEAR(read_sample(*three, 0).pixels[2], (100 / 255.0 - 0.406) / 0.225, 1e-4);
  const auto one =
      open_image_folder(folder.path(), Split::kAll, {.image_size = 4, .channels = 1});
  ASSERT_EQ(one->sample_shape(), (Shape{4, 4, 1}));
  EXPECT_NEAR(read_sample(*one, 0).pixels[5], (100 / 255.0 - 0.449) / 0.226, 1e-4);
  EXPECT_NEAR(read_sample(*one, 1).pixels[5], (0.299 - 0.449) / 0.226, 1e-4);
}

TEST(ImageFolder, DealsOutATenthOfEachClass) {
  const TempFolder folder;
  for (int i = 0; i < 20; ++i) {
    const auto value = static_cast<uint8_t>(10 * i);
    folder.write("a/" + std::to_string(i) + ".png", png_file(plain(value, 0, 0)));
    if (i < 5) folder.write("b/" + std::to_string(i) + ".png", png_file(plain(value, 0, 0)));
  }
  const FolderOptions options{.image_size = 4, .augment = false};
  const auto train = open_image_folder(folder.path(), Split::kTrain, options);
  const auto test = open_image_folder(folder.path(), Split::kTest, options);
  EXPECT_EQ(train->size(), 18 + 4);
  EXPECT_EQ(test->size(), 2 + 1);
  std::set<Sample> together = set_of(*train);
  together.merge(set_of(*test));
  EXPECT_EQ(together, set_of(*open_image_folder(folder.path(), Split::kAll, options)));
  EXPECT_EQ(set_of(*test), set_of(*open_image_folder(folder.path(), Split::kTest, options)));
}

TEST(ImageFolder, TakesSplitsFromSubfolders) {
  for (const std::string held : {"val", "test"}) {
    const TempFolder folder;
    folder.write("train/a/1.png", png_file(plain(1, 1, 1)));
    folder.write("train/b/1.png", png_file(plain(2, 2, 2)));
    folder.write(held + "/b/1.png", png_file(plain(3, 3, 3)));
    EXPECT_EQ(open_image_folder(folder.path(), Split::kTrain)->size(), 2);
    EXPECT_EQ(open_image_folder(folder.path(), Split::kAll)->size(), 3);
    const auto test = open_image_folder(folder.path(), Split::kTest, {.image_size = 4});
    ASSERT_EQ(test->size(), 1);
    EXPECT_EQ(test->classes(), 2);
    EXPECT_EQ(read_sample(*test, 0).label, 1);
    folder.write(held + "/c/1.png", png_file(plain(3, 3, 3)));
    data_error([&] { open_image_folder(folder.path(), Split::kTest); },
               folder.path() + "/" + held + "/c");
  }
}

TEST(ImageFolder, KeepsATenthOfATrainingFolderAlone) {
  const TempFolder folder;
  for (int i = 0; i < 10; ++i) {
    folder.write("train/a/" + std::to_string(i) + ".png", png_file(plain(1, 1, 1)));
    folder.write("train/b/" + std::to_string(i) + ".png", png_file(plain(2, 2, 2)));
  }
  const auto train = open_image_folder(folder.path(), Split::kTrain, {.image_size = 4});
  EXPECT_EQ(train->classes(), 2);
  EXPECT_EQ(train->size(), 18);
  EXPECT_EQ(open_image_folder(folder.path(), Split::kTest, {.image_size = 4})->size(), 2);
}

TEST(ImageFolder, SplitsAreNoClasses) {
  for (const std::string others :
       {"train valid", "val test", "test", "train validation test"}) {
    const TempFolder folder;
    std::istringstream names(others);
    for (std::string name; names >> name;) {
      folder.write(name + "/a/1.png", png_file(plain(1, 1, 1)));
      folder.write(name + "/b/1.png", png_file(plain(2, 2, 2)));
    }
    if (others == "train validation test") {  // what is found under test/ is enough
      EXPECT_EQ(open_image_folder(folder.path(), Split::kTest)->size(), 2);
      continue;
    }
    try {
      open_image_folder(folder.path(), Split::kAll);
      ADD_FAILURE() << others;
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("class folders in train/")) << others;
    }
  }
  const TempFolder vehicles;
  vehicles.write("plane/1.png", png_file(plain(1, 1, 1)));
  vehicles.write("train/1.png", png_file(plain(2, 2, 2)));
  EXPECT_EQ(open_image_folder(vehicles.path(), Split::kAll)->classes(), 2);
}

// A picture whose red is its column and whose green is its row shows what was cut out.
TEST(ImageFolder, TestImagesAreCutFromTheCentre) {
  const TempFolder folder;
  Image image{40, 60, 3, {}};
  for (int y = 0; y < 40; ++y) {
    for (int x = 0; x < 60; ++x) {
      image.pixels.insert(image.pixels.end(),
                          {static_cast<uint8_t>(4 * x), static_cast<uint8_t>(4 * y), 0});
    }
  }
  folder.write("a/1.png", png_file(image));
  const auto data =
      open_image_folder(folder.path(), Split::kAll, {.image_size = 32, .resize = 40});
  const Sample sample = read_sample(*data, 0);
  for (int y = 0; y < 32; ++y) {
    for (int x = 0; x < 32; ++x) {
      const float* p = &sample.pixels[static_cast<size_t>(3 * (y * 32 + x))];
      ASSERT_NEAR(p[0] * 0.229 * 255 + 0.485 * 255, 4 * (x + 14), 1e-2);
      ASSERT_NEAR(p[1] * 0.224 * 255 + 0.456 * 255, 4 * (y + 4), 1e-2);
    }
  }
}

TEST(ImageFolder, TrainingCropsDependOnSeedAndIndexAlone) {
  const TempFolder folder;
  for (const char* name : {"a/1.png", "a/2.png", "a/3.png", "a/4.png"}) {
    folder.write(name, png_file(picture(50, 70, 3)));
  }
  const auto data = open_image_folder(folder.path(), Split::kTrain, {.image_size = 16});
  ASSERT_EQ(data->size(), 3);
  EXPECT_EQ(read_sample(*data, 0, 5), read_sample(*data, 0, 5));
  EXPECT_NE(read_sample(*data, 0, 5), read_sample(*data, 0, 6));
  EXPECT_NE(read_sample(*data, 0, 5), read_sample(*data, 1, 5));
  const auto still =
      open_image_folder(folder.path(), Split::kTrain, {.image_size = 16, .augment = false});
  EXPECT_EQ(read_sample(*still, 0, 5), read_sample(*still, 1, 6));
  int mirrored = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {  // red grows to the right, unless mirrored
    const Sample sample = read_sample(*data, 0, seed);
    mirrored += sample.pixels[0] > sample.pixels[3 * 15];
    for (float v : sample.pixels) ASSERT_TRUE(v > -2.2f && v < 2.7f);
  }
  EXPECT_GT(mirrored, 25);
  EXPECT_LT(mirrored, 75);
}

TEST(ImageFolder, OddShapesCanBeCropped) {
  const TempFolder folder;
  folder.write("a/wide.png", png_file(picture(1, 90, 3)));
  folder.write("a/tall.png", png_file(picture(90, 2, 3)));
  folder.write("a/dot.png", png_file(picture(1, 1, 1)));
  folder.write("a/zlast.png", png_file(picture(3, 3, 1)));
  const auto train = open_image_folder(folder.path(), Split::kTrain, {.image_size = 7});
  const auto all = open_image_folder(folder.path(), Split::kAll, {.image_size = 7});
  for (uint64_t seed = 0; seed < 50; ++seed) {
    for (int64_t i = 0; i < train->size(); ++i) {
      for (float v : read_sample(*train, i, seed).pixels) ASSERT_TRUE(std::isfinite(v));
    }
  }
  for (int64_t i = 0; i < all->size(); ++i) {
    for (float v : read_sample(*all, i).pixels) ASSERT_TRUE(std::isfinite(v));
  }
}

TEST(ImageFolder, DamageIsFoundWhenOpening) {
  const TempFolder folder;
  folder.write("a/1.png", png_file(picture(20, 20, 3)));
  const ByteVector good = jpeg_file(picture(20, 20, 3), JpegKind::kColour);
  auto open = [&] { open_image_folder(folder.path(), Split::kAll); };
  for (size_t n : {size_t{0}, size_t{1}, good.size() / 2, good.size() - 1}) {
    const std::string path = folder.write("a/2.jpg", testing::first(good, n));
    EXPECT_LE(data_error(open, path), static_cast<int64_t>(n));
  }
  folder.write("a/2.jpg", good);
  EXPECT_NO_THROW(open());
  std::filesystem::create_directory(folder.path() + "/b");
  data_error(open, folder.path() + "/b");
}

TEST(ImageFolder, FileThatChangesLaterIsAnErrorWhenRead) {
  const TempFolder folder;
  const ByteVector good = png_file(picture(20, 20, 3));
  const std::string path = folder.write("a/1.png", good);
  const auto data = open_image_folder(folder.path(), Split::kAll, {.image_size = 8});
  folder.write("a/1.png", testing::first(good, good.size() - 20));
  data_error([&] { read_sample(*data, 0); }, path);
  std::filesystem::remove(path);
  EXPECT_EQ(data_error([&] { read_sample(*data, 0); }, path), -1);
}

TEST(ImageFolder, EmptyAndMissingFoldersAreErrors) {
  const TempFolder folder;
  data_error([&] { open_image_folder(folder.path(), Split::kAll); }, folder.path());
  const std::string none = folder.path() + "/none";
  data_error([&] { open_image_folder(none, Split::kAll); }, none);
  const std::string file = folder.write("file", {1});
  data_error([&] { open_image_folder(file, Split::kAll); }, file);
  folder.write("a/1.png", png_file(picture(4, 4, 1)));
  data_error([&] { open_image_folder(folder.path(), Split::kTest); }, folder.path());
  EXPECT_THROW(open_image_folder(folder.path(), Split::kAll, {.channels = 4}), UsageError);
  EXPECT_THROW(open_image_folder(folder.path(), Split::kAll, {.image_size = 0}), UsageError);
  EXPECT_THROW(open_image_folder(folder.path(), Split::kAll, {.image_size = 8, .resize = 7}),
               UsageError);
}

}  // namespace
}  // namespace tidemark
