// The samples of a data set as values, to be compared.
#pragma once

#include <cstdint>
#include <vector>

#include "models/data/dataset.h"

namespace tidemark::testing {

struct Sample {
  std::vector<float> pixels;
  int64_t label = -1;
  auto operator<=>(const Sample&) const = default;
};

inline Sample read_sample(const Dataset& data, int64_t index, uint64_t seed = 0) {
  Sample sample;
  sample.pixels.resize(static_cast<size_t>(data.sample_shape().elements()));
  data.read(index, seed, sample.pixels, sample.label);
  return sample;
}

inline std::vector<Sample> read_all(const Dataset& data) {
  std::vector<Sample> all;
  for (int64_t i = 0; i < data.size(); ++i) all.push_back(read_sample(data, i));
  return all;
}

}  // namespace tidemark::testing
