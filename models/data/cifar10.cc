#include <algorithm>
#include <filesystem>

#include "models/data/dataset.h"
#include "models/data/memory_images.h"
#include "runtime/core/input_file.h"

namespace tidemark {
namespace {

// A record is a label followed by the red, the green and the blue plane, row by row.
constexpr int64_t kSide = 32, kClasses = 10, kPad = 4;
constexpr int64_t kPlane = kSide * kSide, kRecord = 1 + 3 * kPlane;

void append(LabelledBytes& all, const std::string& path, int64_t records) {
  InputFile file(path);
  const int64_t expected = records * kRecord;
  if (file.size() != expected) {
    throw DataError(path, std::min(file.size(), expected),
                    std::to_string(records) + " records take " + std::to_string(expected) +
                        " bytes, but the file has " + std::to_string(file.size()));
  }
  std::vector<uint8_t> record(kRecord);
  for (int64_t r = 0; r < records; ++r) {
    file.read_exact(record);
    if (record[0] >= kClasses) {
      throw DataError(path, r * kRecord,
                      "label " + std::to_string(record[0]) + " is not one of 0 to 9");
    }
    all.labels.push_back(record[0]);
    for (size_t i = 0; i < kPlane; ++i) {
      for (size_t c = 0; c < 3; ++c) all.pixels.push_back(record[1 + c * kPlane + i]);
    }
  }
}

}  // namespace

std::unique_ptr<Dataset> open_cifar10(const std::string& dir, Split split,
                                      const ImageOptions& options, int64_t records_per_file) {
  if (records_per_file <= 0 || records_per_file > 1'000'000) {
    throw UsageError("cifar10: " + std::to_string(records_per_file) + " records per file");
  }
  namespace fs = std::filesystem;
  fs::path folder(dir);
  std::error_code ignored;
  if (fs::is_directory(folder / "cifar-10-batches-bin", ignored))
    folder /= "cifar-10-batches-bin";

  std::vector<std::string> files;
  if (split != Split::kTest) {
    for (int i = 1; i <= 5; ++i) files.emplace_back("data_batch_" + std::to_string(i) + ".bin");
  }
  if (split != Split::kTrain) files.emplace_back("test_batch.bin");
  LabelledBytes data{kSide, kSide, 3, {}, {}};
  const auto records = files.size() * static_cast<size_t>(records_per_file);
  for (size_t i = 0; i < files.size(); ++i) {
    // Reserved only after the first file is known to be as long as claimed.
    if (i == 1) {
      data.pixels.reserve(records * 3 * kPlane);
      data.labels.reserve(records);
    }
    append(data, (folder / files[i]).string(), records_per_file);
  }
  // Mean and deviation of the training images, per channel.
  PixelScale scale{255, {0.4914f, 0.4822f, 0.4465f}, {0.2470f, 0.2435f, 0.2616f}};
  const bool augment = options.augment && split == Split::kTrain;
  return std::make_unique<MemoryImages>("cifar10", split, std::move(data), kClasses,
                                        std::move(scale), options, augment ? kPad : 0);
}

}  // namespace tidemark
