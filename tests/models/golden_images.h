// What networks for images are compared with PyTorch on: images, labels, and errors.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "models/nn/parameter_init.h"
#include "tests/support/golden.h"
#include "tests/support/values.h"

namespace tidemark::testing {

// The images that the file's network was trained on, by its seed.
inline Tensor golden_images(const Json& golden, const Shape& shape) {
  return from(draw_normal(golden.at("seed").get<uint64_t>(),
                          golden.at("images_index").get<uint32_t>(), shape.elements(), 1.0),
              shape);
}

inline Tensor golden_labels(const Json& golden, int64_t count) {
  const auto classes = golden.at("classes").get<int64_t>();
  std::vector<int64_t> labels(static_cast<size_t>(count));
  for (size_t i = 0; i < labels.size(); ++i) {
    labels[i] = static_cast<int64_t>(7 * i + 3) % classes;
  }
  return from(labels, {count});
}

struct GoldenComparison {
  std::string name;
  double error;      // relative
  double yardstick;  // PyTorch's, in float32 unless the test says otherwise
};

inline GoldenComparison compared(const std::string& name, const Json& expected,
                                 const std::vector<float>& ours, double yardstick) {
  const GoldenError error = golden_error(expected, ours);
  const auto norm = expected.at("norm").get<double>();
  return {name, std::max(error.samples, error.norm) / norm, yardstick};
}

inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace tidemark::testing
