#include "examples/common/shaped_training.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "examples/common/data_source.h"
#include "examples/common/image_training.h"
#include "examples/common/text_data.h"
#include "examples/common/text_training.h"
#include "models/text/text_corpus.h"
#include "runtime/device/pages.h"

namespace tidemark {
namespace {

// Sizes of steps are multiples of this share (1/n) of the largest, except for short sequences.
constexpr int64_t kSizes = 8;

constexpr int64_t kPixelBytes = sizeof(float), kIdBytes = sizeof(int64_t);

// A fixed pseudo-random number for each place.
uint64_t scrambled(int64_t place) {
  uint64_t x = static_cast<uint64_t>(place) * 0x9E3779B97F4A7C15ull;
  x ^= x >> 31;
  return x * 0xD6E8FEB86659FD93ull >> 16;
}

class ShapedImages final : public ShapedTraining {
 public:
  ShapedImages(const ResNetFlags& flags, const DataSource& data)
      : data_(data), training_(flags, data) {}

  StepOutcome step(const StepShape& shape) override {
    HostBatch batch = shape_only(Shape{shape.size, shape.size, data_.sample[2]}, shape.batch);
    if (Session::current().device().has_data()) {
      reserve(batch.shape.elements(), shape.batch);
      batch.pixels = pixels_;
      batch.labels = labels_;
    }
    return training_.train(batch);
  }
  std::optional<std::string> checksum() const override { return training_.checksum(); }
  Bytes data_bytes() const override {
    return Bytes(count_ * kPixelBytes + labelled_ * kIdBytes);
  }

 private:
  // The beginning of a batch does not depend on its size.
  void reserve(int64_t pixels, int64_t labels) {
    if (pixels > count_) {
      count_ = pixels;
      const Bytes bytes(pixels * kPixelBytes);
      // Memory that a GPU copies at full speed. It lives as long as copies need it.
      const std::shared_ptr<MemoryRegion> region =
          Session::current().device().adopt(map_pages(bytes), bytes);
      pixels_ = std::shared_ptr<float[]>(region, reinterpret_cast<float*>(region->data()));
      for (int64_t i = 0; i < pixels; ++i) {
        pixels_[i] = static_cast<float>(scrambled(i) % 2048) / 1024 - 1;
      }
    }
    if (labels > labelled_) {
      labelled_ = labels;
      labels_ = std::make_shared_for_overwrite<int64_t[]>(static_cast<size_t>(labels));
      for (int64_t i = 0; i < labels; ++i) labels_[i] = i % data_.classes;
    }
  }

  const DataSource& data_;
  ImageTraining training_;
  std::shared_ptr<float[]> pixels_;
  std::shared_ptr<int64_t[]> labels_;
  int64_t count_ = 0, labelled_ = 0;
};

class ImageJob final : public ShapedJob {
 public:
  explicit ImageJob(const ResNetFlags& flags) : flags_(flags), data_(describe_data(flags)) {}

  StepShape shape() const override { return {flags_.batch, data_.sample[0]}; }
  std::string things() const override { return "images"; }
  std::string announcement() const override {
    return fmt::format("{}, images of {}x{}x{}, {} classes", flags_.model, data_.sample[0],
                       data_.sample[1], data_.sample[2], data_.classes);
  }
  std::vector<int64_t> sizes() const override {
    const int64_t unit = std::max<int64_t>(1, data_.sample[0] / kSizes);
    std::vector<int64_t> sizes;
    // Other networks may have parameters that depend on the size, or a minimum size.
    const bool any_size = flags_.model.starts_with("resn");
    // The last layers must see more than one pixel, or batch norm is meaningless at batch 1.
    const bool small_stem =
        flags_.stem == "cifar" || (flags_.stem == "auto" && data_.sample[0] <= 64);
    const int64_t least = (small_stem ? 8 : 32) + 1;
    for (int64_t k = kSizes / 2; any_size && k < kSizes; ++k) {
      if (k * unit >= least) sizes.push_back(k * unit);
    }
    sizes.push_back(data_.sample[0]);
    return sizes;
  }
  Bytes data_bytes(const StepShape& shape) const override {
    const int64_t pixels = shape.size * shape.size * data_.sample[2];
    return Bytes(shape.batch * (pixels * kPixelBytes + kIdBytes));
  }
  std::unique_ptr<ShapedTraining> start() const override {
    return std::make_unique<ShapedImages>(flags_, data_);
  }

 private:
  const ResNetFlags flags_;
  const DataSource data_;
};

class ShapedTexts final : public ShapedTraining {
 public:
  ShapedTexts(const BertFlags& flags, const TextData& data)
      : flags_(flags), words_(data.vocabulary_size), training_(flags, data) {}

  StepOutcome step(const StepShape& shape) override {
    TextBatch batch{.rows = shape.batch, .length = shape.size, .asked = shape.batch};
    if (flags_.task == "mlm") batch.asked *= masked_per_row(shape.size);
    if (flags_.task == "clm") batch.asked *= shape.size;
    if (Session::current().device().has_data()) fill(batch);
    return training_.train(batch);
  }
  std::optional<std::string> checksum() const override { return training_.checksum(); }
  Bytes data_bytes() const override { return bytes_; }

 private:
  template <class Value>
  TextBatch::Ids make(int64_t count, const Value& value) {
    std::vector<int64_t> values(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) values[static_cast<size_t>(i)] = value(i);
    bytes_ += Bytes(count * kIdBytes);
    return std::make_shared<const std::vector<int64_t>>(std::move(values));
  }
  int64_t word(int64_t place) const {
    return static_cast<int64_t>(scrambled(place) % static_cast<uint64_t>(words_));
  }

  void fill(TextBatch& batch) {
    const int64_t length = batch.length, tokens = batch.rows * length;
    bytes_ = Bytes(0);
    batch.tokens = make(tokens, [&](int64_t i) { return word(i); });
    if (flags_.task == "squad") {
      batch.segments = make(tokens, [&](int64_t i) { return i % length >= length / 4; });
      batch.lengths = make(batch.rows, [&](int64_t) { return length; });
      batch.labels = make(batch.rows, [&](int64_t i) { return i % length; });
      batch.ends = make(batch.rows, [&](int64_t i) { return i % length; });
      return;
    }
    if (flags_.task == "mlm") {
      const int64_t per_row = batch.asked / batch.rows;
      batch.positions = make(batch.asked, [&](int64_t i) {
        return i / per_row * length + i % per_row * length / per_row;
      });
    }
    batch.labels = make(batch.asked, [&](int64_t i) { return word(i + 1); });
  }

  const BertFlags& flags_;
  const int64_t words_;
  TextTraining training_;
  Bytes bytes_{0};
};

class TextJob final : public ShapedJob {
 public:
  explicit TextJob(const BertFlags& flags) : flags_(flags), data_(describe_text(flags)) {}

  StepShape shape() const override { return {flags_.batch, flags_.length}; }
  std::string things() const override { return "sequences"; }
  std::string announcement() const override {
    return fmt::format("{}, {}, sequences of {}, {} words", flags_.model, flags_.task,
                       flags_.length, data_->vocabulary_size);
  }
  std::vector<int64_t> sizes() const override {
    const int64_t unit = std::max<int64_t>(8, flags_.length / kSizes);
    std::vector<int64_t> sizes;
    for (int64_t size = unit; size < flags_.length; size += unit) sizes.push_back(size);
    sizes.push_back(flags_.length);
    return sizes;
  }
  Bytes data_bytes(const StepShape& shape) const override {
    const int64_t length = shape.size;
    int64_t ids = 2 * length;                                             // clm: tokens, labels
    if (flags_.task == "mlm") ids = length + 2 * masked_per_row(length);  // labels, positions
    if (flags_.task == "squad") ids = 2 * length + 3;  // segments; length, begin and end
    return Bytes(shape.batch * ids * kIdBytes);
  }
  std::unique_ptr<ShapedTraining> start() const override {
    return std::make_unique<ShapedTexts>(flags_, *data_);
  }

 private:
  const BertFlags flags_;
  const std::unique_ptr<TextData> data_;
};

}  // namespace

std::unique_ptr<ShapedJob> make_shaped_job(const ResNetFlags& flags) {
  return std::make_unique<ImageJob>(flags);
}

std::unique_ptr<ShapedJob> make_shaped_job(const BertFlags& flags) {
  return std::make_unique<TextJob>(flags);
}

Program shaped_program(const ShapedJob& job, std::vector<StepShape> shapes) {
  return [&job, shapes = std::move(shapes)] {
    const std::shared_ptr<ShapedTraining> training = job.start();
    std::vector<std::function<void()>> steps;
    for (const StepShape& shape : shapes) {
      for (int i = 0; i < 2; ++i) steps.emplace_back([=] { training->step(shape); });
    }
    return steps;
  };
}

}  // namespace tidemark
