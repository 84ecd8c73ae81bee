// Creates tensors from host values and reads them back, for tests of operators.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "ops/autograd/autograd.h"
#include "ops/view/contiguous.h"
#include "runtime/session/session.h"
#include "tests/support/device_under_test.h"
#include "tests/support/machine.h"
#include "tests/support/usage_error.h"

namespace tidemark::testing {

// A test with a session of its own: on the device under test, with two threads, in float32.
class SessionTest : public ::testing::Test {
 protected:
  static SessionOptions options() {
    SessionOptions options;
    options.device = device_under_test();
    options.threads = test_threads();
    options.tf32 = false;
    options.budget = Bytes(256 << 20);
    options.seed = 42;
    return options;
  }
  Session session_{options()};
};

inline std::vector<float> random_values(int64_t count, uint32_t seed, float low = -1,
                                        float high = 1) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> draw(low, high);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = draw(generator);
  return values;
}

// `dtype` is given if elements are stored as another type of the same size (bool as uint8_t).
template <class T>
Tensor from(const std::vector<T>& values, const Shape& shape, DType dtype = dtype_of<T>()) {
  EXPECT_EQ(static_cast<int64_t>(values.size()), shape.elements());
  auto kept = std::make_shared<const std::vector<T>>(values);
  return Session::current().upload(TensorMeta::contiguous(dtype, shape), Category::kData,
                                   kept->data(), kept, "test");
}

// Uniform in [low, high).
inline Tensor random_tensor(const Shape& shape, uint32_t seed, float low = -1, float high = 1) {
  return from(random_values(shape.elements(), seed, low, high), shape);
}

// The same, as a leaf that needs a gradient.
inline Tensor random_leaf(const Shape& shape, uint32_t seed, float low = -1, float high = 1) {
  Tensor leaf = random_tensor(shape, seed, low, high);
  require_grad(leaf);
  return leaf;
}

// The elements in row-major order, whatever the strides. T: the tensor's type, or uint8_t for
// bool.
template <class T = float>
std::vector<T> to_vector(const Tensor& tensor) {
  const NoGrad no_grad;
  EXPECT_EQ(static_cast<int64_t>(sizeof(T)), size_of(tensor.dtype()).count());
  std::vector<T> values(static_cast<size_t>(tensor.elements()));
  if (!values.empty()) {
    EXPECT_TRUE(Session::current().download(contiguous(tensor), values.data()));
  }
  return values;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

// Expects each element within `tolerance` of the expected one, absolute or relative.
template <class Expected>
void expect_close(const Tensor& actual, const std::vector<Expected>& expected,
                  double tolerance = 1e-6) {
  const std::vector<float> values = to_vector(actual);
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const double want = static_cast<double>(expected[i]);
    ASSERT_NEAR(values[i], want, tolerance * std::max(1.0, std::abs(want)))
        << "element " << i << " of " << actual.shape().to_string();
  }
}

}  // namespace tidemark::testing
