// Makes parameters and buffers with their initial values, in the current session.
//
// Values are drawn on the host from Philox by (seed, index of the parameter, element). They do
// not depend on the device, the thread count or any other tensor made. The index counts
// parameters in the order of creation; buffers have none. Nothing is drawn on devices without
// data.
//
// Threads: the session's issuing thread.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/core/category.h"
#include "runtime/core/dtype.h"
#include "runtime/core/shape.h"
#include "runtime/tensor/tensor.h"

namespace tidemark {

class ParameterInit {
 public:
  explicit ParameterInit(uint64_t seed) : seed_(seed) {}

  // The type of the parameters to come whose values are drawn: float32, the first type, or
  // bfloat16, rounded to the nearest. Those that begin with one value, such as biases and
  // norms, are float32 always: they are small.
  void store_as(DType dtype) { dtype_ = dtype; }
  // Off: the parameters to come are 0 instead of drawn, because they will be loaded. The same
  // numbers stay reserved for them.
  void set_drawing(bool on) { drawing_ = on; }

  // Makes the next parameter. Throws OutOfMemory.
  Tensor normal(const Shape& shape, double deviation);
  Tensor uniform(const Shape& shape, double bound);  // in [-bound, bound)
  Tensor constant(const Shape& shape, float value);
  // He et al. 2015 for a convolution (K, R, S, C / groups) followed by ReLU: deviation sqrt(2 /
  // (K * R * S)), which preserves the variance of gradients. Weights with time, (K, T, R, S,
  // C), likewise.
  Tensor kaiming_normal_fan_out(const Shape& weight);

  // Makes a buffer: neither trained nor counted.
  static Tensor buffer(const Shape& shape, float value);
  // The same with these values, or, on a device without data, with none. `name`: static text.
  static Tensor buffer(const Shape& shape, std::vector<float> values, const char* name);

 private:
  // The next parameter, with the values of draw(index, first element, values).
  template <class Draw>
  Tensor drawn(const Shape& shape, const Draw& draw);

  uint64_t seed_;
  DType dtype_ = DType::kFloat32;
  bool drawing_ = true;
  uint32_t next_index_ = 0;
};

// The random draws. Element i of parameter `index` takes word i % 4 of the Philox block {i / 4,
// 0, index, kParameterStream}; normals are Box-Muller over word pairs, in double.
inline constexpr uint32_t kParameterStream = 0x50415241;
std::vector<float> draw_normal(uint64_t seed, uint32_t index, int64_t count, double deviation);
std::vector<float> draw_uniform(uint64_t seed, uint32_t index, int64_t count, double bound);

// A float32 tensor filled with one value. No operator produces it, so it is never evicted.
Tensor upload_constant(const Shape& shape, float value, Category category, const char* name);

}  // namespace tidemark
