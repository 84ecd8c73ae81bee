#include <algorithm>
#include <filesystem>

#include "models/data/dataset.h"
#include "models/data/memory_images.h"
#include "runtime/core/input_file.h"

namespace tidemark {
namespace {

constexpr int64_t kClasses = 10;
constexpr int64_t kMaxFile = int64_t{1} << 30;

std::string find_file(const std::string& dir, const std::string& name) {
  std::string plain = (std::filesystem::path(dir) / name).string();
  std::error_code ignored;
  if (std::filesystem::exists(plain, ignored)) return plain;
  if (std::filesystem::exists(plain + ".gz", ignored)) return plain + ".gz";
  throw DataError(plain, "not found, with or without .gz");
}

uint32_t big_endian(std::span<const uint8_t> bytes, size_t at) {
  return uint32_t{bytes[at]} << 24 | uint32_t{bytes[at + 1]} << 16 |
         uint32_t{bytes[at + 2]} << 8 | bytes[at + 3];
}

// An IDX file of bytes: magic 00 00 08 <rank>, each extent as 4 big-endian bytes, then the
// data.
struct Idx {
  std::string path;
  bool unpacked = false;
  std::vector<int64_t> extents;
  std::vector<uint8_t> data;

  DataError error(int64_t offset, const std::string& what) const {
    return {path, offset, what + (unpacked ? " (offset in the unpacked file)" : "")};
  }
};

Idx read_idx(const std::string& path, size_t rank) {
  FileContent content = read_whole_file(path, kMaxFile);
  Idx idx{path, content.unpacked, {}, {}};
  std::vector<uint8_t>& bytes = content.bytes;
  const size_t header = 4 + 4 * rank;
  if (bytes.size() < header) {
    throw idx.error(static_cast<int64_t>(bytes.size()), "truncated in the IDX header");
  }
  if (big_endian(bytes, 0) != 0x0800 + rank) {
    throw idx.error(0, "not an IDX file of bytes with " + std::to_string(rank) + " dimensions");
  }
  int64_t elements = 1;
  for (size_t i = 0; i < rank; ++i) {
    const size_t at = 4 + 4 * i;
    idx.extents.push_back(big_endian(bytes, at));
    if (idx.extents[i] == 0 || idx.extents[i] > kMaxFile / elements) {
      throw idx.error(static_cast<int64_t>(at),
                      "an extent of " + std::to_string(idx.extents[i]) + " is out of range");
    }
    elements *= idx.extents[i];
  }
  const auto expected = static_cast<int64_t>(header) + elements;
  const auto found = static_cast<int64_t>(bytes.size());
  if (found != expected) {
    throw idx.error(std::min(found, expected),
                    "the header declares " + std::to_string(expected) +
                        " bytes, but the file has " + std::to_string(found));
  }
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<int64_t>(header));
  idx.data = std::move(bytes);
  return idx;
}

void append(LabelledBytes& all, const std::string& dir, const std::string& prefix) {
  Idx images = read_idx(find_file(dir, prefix + "-images-idx3-ubyte"), 3);
  Idx labels = read_idx(find_file(dir, prefix + "-labels-idx1-ubyte"), 1);
  if (labels.extents[0] != images.extents[0]) {
    throw labels.error(4, std::to_string(labels.extents[0]) + " labels for " +
                              std::to_string(images.extents[0]) + " images");
  }
  for (size_t i = 0; i < labels.data.size(); ++i) {
    if (labels.data[i] < kClasses) continue;
    throw labels.error(8 + static_cast<int64_t>(i),
                       "label " + std::to_string(labels.data[i]) + " is not one of 0 to 9");
  }
  if (all.labels.empty()) {
    all = {images.extents[1], images.extents[2], 1, std::move(images.data),
           std::move(labels.data)};
    return;
  }
  if (images.extents[1] != all.height || images.extents[2] != all.width) {
    throw images.error(8, "the image size differs from the training file's");
  }
  all.pixels.insert(all.pixels.end(), images.data.begin(), images.data.end());
  all.labels.insert(all.labels.end(), labels.data.begin(), labels.data.end());
}

}  // namespace

std::unique_ptr<Dataset> open_mnist(const std::string& dir, Split split,
                                    const ImageOptions& options) {
  LabelledBytes data;
  if (split != Split::kTest) append(data, dir, "train");
  if (split != Split::kTrain) append(data, dir, "t10k");
  // Mean and deviation of MNIST's training images.
  return std::make_unique<MemoryImages>("mnist", split, std::move(data), kClasses,
                                        PixelScale{255, {0.1307f}, {0.3081f}}, options, 0);
}

}  // namespace tidemark
