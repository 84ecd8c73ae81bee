// Small images of one size, held in memory as bytes: the form of digits, MNIST and CIFAR-10
// after their files have been read.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/data/dataset.h"
#include "models/data/resample.h"

namespace tidemark {

// The output of a reader. Values 0..top map to 0..1, then to (v - mean) / deviation per
// channel.
struct LabelledBytes {
  int64_t height = 0, width = 0, channels = 0;
  std::vector<uint8_t> pixels;  // (N, H, W, C)
  std::vector<uint8_t> labels;  // N of them
};

struct PixelScale {
  float top;
  std::vector<float> mean, deviation;  // one per channel
};

class MemoryImages : public Dataset {
 public:
  // REQUIRES: every label < classes. Throws UsageError for invalid options. `crop_pad` enables
  // the CIFAR augmentation, with that much padding.
  MemoryImages(std::string name, Split split, LabelledBytes data, int64_t classes,
               PixelScale scale, const ImageOptions& options, int64_t crop_pad);

  int64_t size() const override { return static_cast<int64_t>(data_.labels.size()); }
  int64_t classes() const override { return classes_; }
  Shape sample_shape() const override { return shape_; }
  void read(int64_t index, uint64_t epoch_seed, std::span<float> pixels,
            int64_t& label) const override;
  std::string name() const override { return name_; }
  std::string description() const override;
  Bytes resident_bytes() const override;
  Bytes scratch_bytes() const override;

 private:
  void augment(std::span<const uint8_t> in, uint64_t epoch_seed, int64_t index,
               std::span<uint8_t> out) const;

  std::string name_;
  Split split_;
  LabelledBytes data_;
  int64_t classes_;
  PixelScale scale_;
  int64_t crop_pad_;
  Shape shape_;
  std::optional<ResampleAxis> rows_, columns_;  // nullopt: keep the size
};

// (v / top - mean) / deviation, in place. pixels (H, W, C) in 0..top.
void normalise(std::span<float> pixels, const PixelScale& scale);

// in (H, W, from) -> out (H, W, to), from and to 1 or 3, by repetition or Rec. 601 luma. The
// two may be one buffer if to <= from, or if `in` is the last H * W values of `out`.
void convert_channels(std::span<const float> in, int64_t from, std::span<float> out,
                      int64_t to);

// Throws UsageError unless `channels` is 1 or 3.
void check_channels(int64_t channels);

}  // namespace tidemark
