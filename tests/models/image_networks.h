// Images and labels for networks that are trained for a step or two, and what sizes they have.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/image_model.h"
#include "models/nn/parameter_init.h"
#include "runtime/session/session.h"

namespace tidemark::testing {

// Random; without values on a device that has none.
inline Tensor images(const Shape& shape) {
  Session& session = Session::current();
  std::shared_ptr<std::vector<float>> values;
  if (session.device().has_data()) {
    values = std::make_shared<std::vector<float>>(draw_normal(1, 12345, shape.elements(), 1.0));
  }
  return session.upload(TensorMeta::contiguous(DType::kFloat32, shape), Category::kData,
                        values ? values->data() : nullptr, values);
}

inline Tensor labels(std::vector<int64_t> classes) {
  const auto owned = std::make_shared<const std::vector<int64_t>>(std::move(classes));
  const Shape shape{static_cast<int64_t>(owned->size())};
  return Session::current().upload(TensorMeta::contiguous(DType::kInt64, shape),
                                   Category::kData, owned->data(), owned);
}

// torchvision 0.26: sum of numel() over parameters(), and how many parameters and buffers
// (num_batches_tracked left out) there are.
struct NetworkSize {
  int64_t elements;
  size_t parameters;
  size_t buffers;
};
inline void expect_size(const ImageModel& model, const NetworkSize& size,
                        const std::string& name) {
  EXPECT_EQ(model.parameter_elements(), size.elements) << name;
  EXPECT_EQ(model.parameters().size(), size.parameters) << name;
  EXPECT_EQ(model.buffers().size(), size.buffers) << name;
}

}  // namespace tidemark::testing
