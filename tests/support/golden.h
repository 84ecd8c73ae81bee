// Compares tensors with samples of PyTorch's in tests/golden, which scripts/make_golden.py
// makes.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/core/dtype.h"

namespace tidemark::testing {

using Json = nlohmann::json;

inline Json read_golden(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  return Json::parse(file);
}

// Tolerances, relative to the tensor's norm or to 1: a multiple of the error of PyTorch's own
// float32, and a floor.
inline constexpr double kGoldenMultiple = 8, kGoldenFloor = 2e-7;

// A multiple of the error of PyTorch's torch.autocast in bfloat16. PyTorch keeps sums of
// residuals and results of layer norms in float32. Here they are rounded like all activations:
// some three roundings for each of PyTorch's.
// A loss is one number, which PyTorch may get right by luck; hence a floor, the spacing of
// bfloat16.
inline constexpr double kBfloat16Multiple = 4, kBfloat16Floor = 1.0 / 256;

// How far off `ours` is: its samples, as if they were all of the tensor, and its norm.
// REQUIRES: as many values as the tensor has.
struct GoldenError {
  double samples, norm;
};
inline GoldenError golden_error(const Json& expected, const std::vector<float>& ours) {
  const auto samples = expected.at("values").get<std::vector<double>>();
  double difference = 0, squares = 0;
  for (size_t j = 0; j < samples.size(); ++j) {
    difference += std::pow(ours[(j * 7919 + 13) % ours.size()] - samples[j], 2);
  }
  for (const float v : ours) squares += double{v} * v;
  const double share = static_cast<double>(ours.size()) / static_cast<double>(samples.size());
  return {std::sqrt(difference * share),
          std::abs(std::sqrt(squares) - expected.at("norm").get<double>())};
}

inline void compare_samples(const Json& golden, const std::string& name,
                            const std::vector<float>& ours, DType computed = DType::kFloat32) {
  const Json& expected = golden.at("tensors").at(name);
  ASSERT_EQ(ours.size(), expected.at("count").get<size_t>()) << name;
  const double scale = std::max(1.0, expected.at("norm").get<double>());
  const bool narrow = computed == DType::kBFloat16;
  const double allowed =
      narrow ? kBfloat16Multiple * expected.at("bfloat16_error").get<double>() + kBfloat16Floor
             : kGoldenMultiple * expected.at("error").get<double>() + kGoldenFloor;
  const GoldenError error = golden_error(expected, ours);
  EXPECT_LE(error.samples / scale, allowed) << name;
  EXPECT_LE(error.norm / scale, allowed) << name;
}

}  // namespace tidemark::testing
