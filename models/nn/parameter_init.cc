#include "models/nn/parameter_init.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numbers>
#include <span>
#include <utility>

#include "runtime/core/bfloat16.h"
#include "runtime/core/philox.h"
#include "runtime/session/session.h"

namespace tidemark {
namespace {

std::array<uint32_t, 4> block_of(uint64_t seed, uint32_t index, int64_t block) {
  return philox4x32({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), index,
                     kParameterStream},
                    philox_key(seed));
}

// Draws elements [first, first + values.size()), block by block. REQUIRES: first % 4 == 0.
template <class FromBlock>
void draw(uint64_t seed, uint32_t index, int64_t first, std::span<float> values,
          const FromBlock& from_block) {
  const auto count = static_cast<int64_t>(values.size());
  for (int64_t at = 0; at < count; at += 4) {
    const std::array<float, 4> four = from_block(block_of(seed, index, (first + at) / 4));
    std::copy_n(four.begin(), std::min<int64_t>(4, count - at), values.begin() + at);
  }
}

void draw_normal(uint64_t seed, uint32_t index, int64_t first, std::span<float> values,
                 double deviation) {
  draw(seed, index, first, values, [=](const std::array<uint32_t, 4>& words) {
    std::array<float, 4> four;
    for (size_t pair = 0; pair < 4; pair += 2) {
      const double radius =
          deviation * std::sqrt(-2.0 * std::log((words[pair] + 1.0) * 0x1p-32));
      const double angle = 2.0 * std::numbers::pi * (words[pair + 1] * 0x1p-32);
      four[pair] = static_cast<float>(radius * std::cos(angle));
      four[pair + 1] = static_cast<float>(radius * std::sin(angle));
    }
    return four;
  });
}

void draw_uniform(uint64_t seed, uint32_t index, int64_t first, std::span<float> values,
                  double bound) {
  draw(seed, index, first, values, [=](const std::array<uint32_t, 4>& words) {
    std::array<float, 4> four;
    for (size_t i = 0; i < 4; ++i) {
      const double unit = uniform_float(words[i]);
      four[i] = static_cast<float>((2.0 * unit - 1.0) * bound);
    }
    return four;
  });
}

// `make` computes the values of elements [first, first + values.size()).
template <class Make>
void make_floats(Bytes offset, std::span<std::byte> piece, const Make& make) {
  make(offset.count() / int64_t{sizeof(float)},
       std::span(reinterpret_cast<float*>(piece.data()), piece.size() / sizeof(float)));
}

template <class Make>
void make_bfloat16(Bytes offset, std::span<std::byte> piece, const Make& make) {
  const std::span values(reinterpret_cast<BFloat16*>(piece.data()),
                         piece.size() / sizeof(BFloat16));
  const int64_t first = offset.count() / int64_t{sizeof(BFloat16)};
  std::array<float, 1024> floats;
  for (size_t at = 0; at < values.size(); at += floats.size()) {
    const auto some = std::span(floats).first(std::min(floats.size(), values.size() - at));
    make(first + static_cast<int64_t>(at), some);
    std::copy(some.begin(), some.end(), values.begin() + static_cast<ptrdiff_t>(at));
  }
}

template <class Make>
Tensor upload_values(DType dtype, const Shape& shape, Category category, const char* name,
                     const Make& make) {
  const auto source = [&](Bytes offset, std::span<std::byte> piece) {
    if (dtype == DType::kBFloat16) {
      make_bfloat16(offset, piece, make);
    } else {
      make_floats(offset, piece, make);
    }
  };
  return Session::current().upload_from(source, TensorMeta::contiguous(dtype, shape), category,
                                        name);
}

}  // namespace

std::vector<float> draw_normal(uint64_t seed, uint32_t index, int64_t count, double deviation) {
  std::vector<float> values(static_cast<size_t>(count));
  draw_normal(seed, index, 0, values, deviation);
  return values;
}

std::vector<float> draw_uniform(uint64_t seed, uint32_t index, int64_t count, double bound) {
  std::vector<float> values(static_cast<size_t>(count));
  draw_uniform(seed, index, 0, values, bound);
  return values;
}

Tensor upload_constant(const Shape& shape, float value, Category category, const char* name) {
  return upload_values(DType::kFloat32, shape, category, name,
                       [=](int64_t, std::span<float> values) {
                         std::fill(values.begin(), values.end(), value);
                       });
}

template <class Draw>
Tensor ParameterInit::drawn(const Shape& shape, const Draw& draw) {
  const uint32_t index = next_index_++;
  return upload_values(dtype_, shape, Category::kParameter, "parameter",
                       [&](int64_t first, std::span<float> values) {
                         if (drawing_) {
                           draw(index, first, values);
                         } else {
                           std::fill(values.begin(), values.end(), 0.0F);
                         }
                       });
}

Tensor ParameterInit::normal(const Shape& shape, double deviation) {
  return drawn(shape, [&](uint32_t index, int64_t first, std::span<float> values) {
    draw_normal(seed_, index, first, values, deviation);
  });
}

Tensor ParameterInit::uniform(const Shape& shape, double bound) {
  return drawn(shape, [&](uint32_t index, int64_t first, std::span<float> values) {
    draw_uniform(seed_, index, first, values, bound);
  });
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

Tensor ParameterInit::buffer(const Shape& shape, std::vector<float> values, const char* name) {
  const auto kept = std::make_shared<std::vector<float>>(std::move(values));
  return Session::current().upload(TensorMeta::contiguous(DType::kFloat32, shape),
                                   Category::kBuffer, kept->empty() ? nullptr : kept->data(),
                                   kept, name);
}

}  // namespace tidemark
