#include <array>

#include "models/data/dataset.h"
#include "models/data/random.h"

namespace tidemark {
namespace {

// Each class has a 4 x 4 grid of +1 and -1 per channel. A sample is its class's grid plus
// noise, scaled to unit variance.
constexpr int64_t kGrid = 4;

class Synthetic : public Dataset {
 public:
  Synthetic(const Shape& shape, int64_t classes, int64_t size, uint64_t seed)
      : shape_(shape), classes_(classes), size_(size), seed_(seed) {
    if (shape.rank() != 3 || shape[0] <= 0 || shape[1] <= 0 || shape[2] <= 0) {
      throw UsageError("synthetic images must have a shape (H, W, C), not " +
                       shape.to_string());
    }
    if (classes <= 0 || size <= 0) {
      throw UsageError("synthetic data need at least one class and one sample");
    }
  }

  int64_t size() const override { return size_; }
  int64_t classes() const override { return classes_; }
  Shape sample_shape() const override { return shape_; }
  std::string name() const override { return "synthetic"; }
  std::string description() const override {
    return "synthetic: " + std::to_string(size_) + " images of " + shape_.to_string() + ", " +
           std::to_string(classes_) + " classes";
  }
  Bytes resident_bytes() const override { return Bytes(0); }
  Bytes scratch_bytes() const override { return Bytes(4 * kGrid * kGrid * shape_[2]); }

  void read(int64_t index, uint64_t, std::span<float> pixels, int64_t& label) const override {
    const auto sample = static_cast<uint64_t>(index);
    CounterRandom noise(seed_, RandomStream::kNoise, sample);
    label = static_cast<int64_t>(noise.below(static_cast<uint64_t>(classes_)));
    CounterRandom pattern(seed_, RandomStream::kPattern, static_cast<uint64_t>(label));
    std::vector<float> grid(static_cast<size_t>(kGrid * kGrid * shape_[2]));
    for (float& cell : grid) cell = pattern.below(2) == 1 ? 0.5f : -0.5f;
    size_t i = 0;
    for (int64_t y = 0; y < shape_[0]; ++y) {
      for (int64_t x = 0; x < shape_[1]; ++x) {
        const int64_t cell = y * kGrid / shape_[0] * kGrid + x * kGrid / shape_[1];
        // 1.5 is sqrt(3 * 3/4): uniform noise of variance 3/4, beside the grid's variance of
        // 1/4.
        for (int64_t c = 0; c < shape_[2]; ++c) {
          pixels[i++] =
              grid[static_cast<size_t>(cell * shape_[2] + c)] + noise.uniform(-1.5f, 1.5f);
        }
      }
    }
  }

 private:
  Shape shape_;
  int64_t classes_;
  int64_t size_;
  uint64_t seed_;
};

}  // namespace

std::unique_ptr<Dataset> make_synthetic(const Shape& shape, int64_t classes, int64_t size,
                                        uint64_t seed) {
  return std::make_unique<Synthetic>(shape, classes, size, seed);
}

}  // namespace tidemark
