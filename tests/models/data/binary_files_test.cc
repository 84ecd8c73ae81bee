// MNIST's IDX files and CIFAR-10's records.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <set>

#include "models/data/dataset.h"
#include "runtime/core/input_file.h"
#include "tests/models/data/files.h"

namespace tidemark {
namespace {

using testing::ByteVector;
using testing::data_error;
using testing::first;
using testing::TempFolder;

ByteVector idx(const std::vector<uint8_t>& extents, const ByteVector& data) {
  ByteVector file{0, 0, 8, static_cast<uint8_t>(extents.size())};
  for (uint8_t extent : extents) file.insert(file.end(), {0, 0, 0, extent});
  file.insert(file.end(), data.begin(), data.end());
  return file;
}

// To open one that nobody writes to would wait for ever.
TEST(InputFile, IsNoPipe) {
  const TempFolder folder;
  const std::string pipe = folder.path() + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  alarm(60);
  data_error([&] { InputFile{pipe}; }, pipe);
  alarm(0);
}

const std::string kImages = "train-images-idx3-ubyte", kLabels = "train-labels-idx1-ubyte";

struct Mnist {
  ByteVector image_bytes, images, labels;
  Mnist() {
    for (int i = 0; i < 3 * 4 * 5; ++i) image_bytes.push_back(static_cast<uint8_t>(4 * i));
    images = idx({3, 4, 5}, image_bytes);
    labels = idx({3}, {7, 0, 9});
  }
};

TEST(Mnist, ReadsPlainAndGzip) {
  const Mnist m;
  for (bool packed : {false, true}) {
    const TempFolder folder;
    folder.write(kImages + (packed ? ".gz" : ""), packed ? testing::gzip(m.images) : m.images);
    folder.write(kLabels, m.labels);
    const auto data = open_mnist(folder.path(), Split::kTrain);
    ASSERT_EQ(data->size(), 3);
    ASSERT_EQ(data->sample_shape(), (Shape{4, 5, 1}));
    EXPECT_EQ(data->name(), "mnist");
    std::vector<float> pixels(20);
    int64_t label = -1;
    data->read(2, 0, pixels, label);
    EXPECT_EQ(label, 9);
    for (size_t i = 0; i < pixels.size(); ++i) {
      EXPECT_NEAR(pixels[i], (m.image_bytes[40 + i] / 255.0 - 0.1307) / 0.3081, 1e-5);
    }
    const std::string missing = folder.path() + "/t10k-images-idx3-ubyte";
    data_error([&] { open_mnist(folder.path(), Split::kTest); }, missing);
  }
}

int64_t mnist_error(const TempFolder& folder, const std::string& path) {
  return data_error([&] { open_mnist(folder.path(), Split::kTrain); }, path);
}

TEST(Mnist, EveryTruncationIsFoundWhenOpening) {
  const Mnist m;
  const TempFolder folder;
  const std::string labels = folder.write(kLabels, m.labels);
  for (size_t n = 0; n < m.images.size(); ++n) {
    const std::string path = folder.write(kImages, first(m.images, n));
    EXPECT_EQ(mnist_error(folder, path), static_cast<int64_t>(n));
  }
  folder.write(kImages, m.images);
  for (size_t n = 0; n < m.labels.size(); ++n) {
    folder.write(kLabels, first(m.labels, n));
    EXPECT_EQ(mnist_error(folder, labels), static_cast<int64_t>(n));
  }
}

TEST(Mnist, EveryCutOfTheGzipIsFound) {
  const Mnist m;
  const TempFolder folder;
  folder.write(kLabels, m.labels);
  const ByteVector packed = testing::gzip(m.images);
  for (size_t n = 0; n < packed.size(); ++n) {
    const std::string path = folder.write(kImages + ".gz", first(packed, n));
    EXPECT_EQ(mnist_error(folder, path), static_cast<int64_t>(n));
  }
}

TEST(Mnist, EveryFlippedHeaderBitIsFound) {
  const Mnist m;
  const TempFolder folder;
  folder.write(kLabels, m.labels);
  for (size_t bit = 0; bit < 16 * 8; ++bit) {
    ByteVector bad = m.images;
    bad[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    const std::string path = folder.write(kImages, bad);
    EXPECT_LE(mnist_error(folder, path), static_cast<int64_t>(bad.size()));
  }
}

TEST(Mnist, LabelsMustMatchAndBeDigits) {
  const Mnist m;
  const TempFolder folder;
  folder.write(kImages, m.images);
  EXPECT_EQ(mnist_error(folder, folder.write(kLabels, idx({3}, {7, 10, 9}))), 9);
  EXPECT_EQ(mnist_error(folder, folder.write(kLabels, idx({2}, {7, 1}))), 4);
  ByteVector longer = m.labels;
  longer.push_back(0);
  EXPECT_EQ(mnist_error(folder, folder.write(kLabels, longer)), 11);
}

constexpr size_t kRecord = 3073;

// Red counts columns, green rows, blue is the record's number.
ByteVector cifar_file(int records, int number) {
  ByteVector file;
  for (int r = 0; r < records; ++r) {
    file.push_back(static_cast<uint8_t>((number + r) % 10));
    for (int c = 0; c < 3; ++c) {
      for (int i = 0; i < 1024; ++i) {
        file.push_back(static_cast<uint8_t>(c == 0 ? 1 + i % 32 : c == 1 ? 1 + i / 32 : r + 1));
      }
    }
  }
  return file;
}

void write_cifar(const TempFolder& folder, const std::string& below = "") {
  for (int i = 1; i <= 5; ++i) {
    folder.write(below + "data_batch_" + std::to_string(i) + ".bin", cifar_file(2, i));
  }
  folder.write(below + "test_batch.bin", cifar_file(2, 8));
}

TEST(Cifar10, ReadsPlanesIntoChannels) {
  const TempFolder folder;
  write_cifar(folder, "cifar-10-batches-bin/");
  const auto train = open_cifar10(folder.path(), Split::kTrain, {.augment = false}, 2);
  const auto test = open_cifar10(folder.path(), Split::kTest, {}, 2);
  EXPECT_EQ(train->size(), 10);
  EXPECT_EQ(test->size(), 2);
  EXPECT_EQ(open_cifar10(folder.path(), Split::kAll, {}, 2)->size(), 12);
  ASSERT_EQ(train->sample_shape(), (Shape{32, 32, 3}));
  std::vector<float> pixels(32 * 32 * 3);
  int64_t label = -1;
  train->read(3, 0, pixels, label);  // the second of data_batch_2
  EXPECT_EQ(label, 3);
  const size_t at = (5 * 32 + 9) * 3;
  EXPECT_NEAR(pixels[at], (10 / 255.0 - 0.4914) / 0.2470, 1e-5);
  EXPECT_NEAR(pixels[at + 1], (6 / 255.0 - 0.4822) / 0.2435, 1e-5);
  EXPECT_NEAR(pixels[at + 2], (2 / 255.0 - 0.4465) / 0.2616, 1e-5);
}

// The picture of column and row numbers shows what the crop and the flip did.
TEST(Cifar10, AugmentsTrainingByPadCropAndFlip) {
  const TempFolder folder;
  write_cifar(folder);
  const auto train = open_cifar10(folder.path(), Split::kTrain, {}, 2);
  std::set<int> shifts_x, shifts_y, flips;
  std::vector<float> pixels(32 * 32 * 3), again(pixels.size());
  for (uint64_t seed = 0; seed < 300; ++seed) {
    int64_t label = -1;
    train->read(4, seed, pixels, label);
    auto value = [&](int y, int x, int c) {
      const double mean = c == 0 ? 0.4914 : 0.4822, deviation = c == 0 ? 0.2470 : 0.2435;
      const float v = pixels[static_cast<size_t>((y * 32 + x) * 3 + c)];
      return static_cast<int>(std::lround((v * deviation + mean) * 255));
    };
    const bool flip = value(16, 17, 0) < value(16, 16, 0);
    const int dx = value(16, flip ? 15 : 16, 0) - 17, dy = value(16, 16, 1) - 17;
    flips.insert(flip);
    shifts_x.insert(dx);
    shifts_y.insert(dy);
    for (int y = 0; y < 32; ++y) {
      for (int x = 0; x < 32; ++x) {
        const int from_y = y + dy, from_x = (flip ? 31 - x : x) + dx;
        const bool inside = from_y >= 0 && from_y < 32 && from_x >= 0 && from_x < 32;
        ASSERT_EQ(value(y, x, 0), inside ? from_x + 1 : 0) << dy << " " << dx << " " << flip;
        ASSERT_EQ(value(y, x, 1), inside ? from_y + 1 : 0);
      }
    }
    train->read(4, seed, again, label);
    ASSERT_EQ(pixels, again);
  }
  const std::set<int> all{-4, -3, -2, -1, 0, 1, 2, 3, 4};
  EXPECT_EQ(shifts_x, all);
  EXPECT_EQ(shifts_y, all);
  EXPECT_EQ(flips.size(), 2u);
}

TEST(Cifar10, DamageIsFoundWhenOpening) {
  const TempFolder folder;
  write_cifar(folder);
  auto open = [&] { open_cifar10(folder.path(), Split::kTrain, {}, 2); };
  const ByteVector good = cifar_file(2, 3);
  for (size_t n : {size_t{0}, size_t{1}, kRecord - 1, kRecord, kRecord + 1, 2 * kRecord - 1}) {
    EXPECT_EQ(data_error(open, folder.write("data_batch_3.bin", first(good, n))),
              static_cast<int64_t>(n));
  }
  ByteVector longer = good;
  longer.push_back(0);
  EXPECT_EQ(data_error(open, folder.write("data_batch_3.bin", longer)),
            static_cast<int64_t>(2 * kRecord));
  ByteVector label = good;
  label[kRecord] = 10;
  EXPECT_EQ(data_error(open, folder.write("data_batch_3.bin", label)),
            static_cast<int64_t>(kRecord));
  std::filesystem::remove(folder.path() + "/data_batch_3.bin");
  EXPECT_EQ(data_error(open, folder.path() + "/data_batch_3.bin"), -1);
}

TEST(Synthetic, IsDeterministicAndClassesDiffer) {
  const auto data = make_synthetic({16, 16, 3}, 5, 200, 11);
  const auto same = make_synthetic({16, 16, 3}, 5, 200, 11);
  const auto other = make_synthetic({16, 16, 3}, 5, 200, 12);
  std::vector<std::vector<double>> means(5, std::vector<double>(768));
  std::vector<int> counts(5);
  std::vector<float> a(768), b(768);
  int64_t label = -1, same_label = -1;
  double squares = 0;
  for (int64_t i = 0; i < 200; ++i) {
    data->read(i, 1, a, label);
    same->read(i, 2, b, same_label);
    ASSERT_EQ(a, b);
    ASSERT_EQ(label, same_label);
    ASSERT_TRUE(label >= 0 && label < 5);
    ++counts[static_cast<size_t>(label)];
    for (size_t k = 0; k < a.size(); ++k) {
      means[static_cast<size_t>(label)][k] += a[k];
      squares += a[k] * a[k];
    }
  }
  other->read(0, 0, a, label);
  data->read(0, 0, b, label);
  EXPECT_NE(a, b);
  EXPECT_NEAR(squares / (200 * 768), 1.0, 0.05);
  double distance = 0;
  for (size_t k = 0; k < 768; ++k) {
    distance += std::abs(means[0][k] / counts[0] - means[1][k] / counts[1]);
  }
  EXPECT_GT(distance / 768, 0.25);
  EXPECT_THROW(make_synthetic({16, 16}, 5, 1, 0), UsageError);
  EXPECT_THROW(make_synthetic({16, 16, 3}, 0, 1, 0), UsageError);
}

}  // namespace
}  // namespace tidemark
