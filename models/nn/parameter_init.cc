#include "models/nn/parameter_init.h"

#include <array>
#include <cmath>
#include <memory>
#include <numbers>
#include <utility>

#include "runtime/core/philox.h"
#include "runtime/session/session.h"

namespace tidemark {
namespace {

std::array<uint32_t, 4> block_of(uint64_t seed, uint32_t index, int64_t block) {
  return philox4x32({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), index,
                     kParameterStream},
                    philox_key(seed));
}

Tensor upload_values(const Shape& shape, Category category, std::vector<float> values,
                     const char* name) {
  const auto owned = std::make_shared<const std::vector<float>>(std::move(values));
  return Session::current().upload(TensorMeta::contiguous(DType::kFloat32, shape), category,
                                   owned->empty() ? nullptr : owned->data(), owned, name);
}

bool has_data() { return Session::current().device().has_data(); }

}  // namespace

std::vector<float> draw_normal(uint64_t seed, uint32_t index, int64_t count, double deviation) {
  std::vector<float> values(static_cast<size_t>(count));
  for (int64_t block = 0; block * 4 < count; ++block) {
    const std::array<uint32_t, 4> words = block_of(seed, index, block);
    std::array<float, 4> four;
    for (size_t pair = 0; pair < 4; pair += 2) {
      const double radius =
          deviation * std::sqrt(-2.0 * std::log((words[pair] + 1.0) * 0x1p-32));
      const double angle = 2.0 * std::numbers::pi * (words[pair + 1] * 0x1p-32);
      four[pair] = static_cast<float>(radius * std::cos(angle));
      four[pair + 1] = static_cast<float>(radius * std::sin(angle));
    }
    for (int64_t i = block * 4; i < std::min(count, block * 4 + 4); ++i) {
      values[static_cast<size_t>(i)] = four[static_cast<size_t>(i % 4)];
    }
  }
  return values;
}

std::vector<float> draw_uniform(uint64_t seed, uint32_t index, int64_t count, double bound) {
  std::vector<float> values(static_cast<size_t>(count));
  for (int64_t block = 0; block * 4 < count; ++block) {
    const std::array<uint32_t, 4> words = block_of(seed, index, block);
    for (int64_t i = block * 4; i < std::min(count, block * 4 + 4); ++i) {
      const double unit = uniform_float(words[static_cast<size_t>(i % 4)]);
      values[static_cast<size_t>(i)] = static_cast<float>((2.0 * unit - 1.0) * bound);
    }
  }
  return values;
}

Tensor upload_constant(const Shape& shape, float value, Category category, const char* name) {
  std::vector<float> values;
  if (has_data()) values.assign(static_cast<size_t>(shape.elements()), value);
  return upload_values(shape, category, std::move(values), name);
}

Tensor ParameterInit::normal(const Shape& shape, double deviation) {
  const uint32_t index = next_index_++;
  std::vector<float> values;
  if (has_data()) values = draw_normal(seed_, index, shape.elements(), deviation);
  return upload_values(shape, Category::kParameter, std::move(values), "parameter");
}

Tensor ParameterInit::uniform(const Shape& shape, double bound) {
  const uint32_t index = next_index_++;
  std::vector<float> values;
  if (has_data()) values = draw_uniform(seed_, index, shape.elements(), bound);
  return upload_values(shape, Category::kParameter, std::move(values), "parameter");
}

Tensor ParameterInit::constant(const Shape& shape, float value) {
  ++next_index_;
  return upload_constant(shape, value, Category::kParameter, "parameter");
}

Tensor ParameterInit::kaiming_normal_fan_out(const Shape& weight) {
  const int64_t fan_out = weight.elements() / weight.back();
  return normal(weight, std::sqrt(2.0 / static_cast<double>(fan_out)));
}

Tensor ParameterInit::buffer(const Shape& shape, float value) {
  return upload_constant(shape, value, Category::kBuffer, "buffer");
}

}  // namespace tidemark
