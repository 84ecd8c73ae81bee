// Makes parameters and buffers with their first values, in the current session.
//
// Values are drawn on the host from Philox by (seed, index of the parameter, element): they do
// not depend on the device, the thread count or on what else was made. The index counts
// parameters in the order of creation; buffers have none. On devices without data nothing is
// drawn.
//
// Threads: the session's issuing thread.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/core/category.h"
#include "runtime/core/shape.h"
#include "runtime/tensor/tensor.h"

namespace tidemark {

class ParameterInit {
 public:
  explicit ParameterInit(uint64_t seed) : seed_(seed) {}

  // The next parameter, float32. Throws OutOfMemory.
  Tensor normal(const Shape& shape, double deviation);
  Tensor uniform(const Shape& shape, double bound);  // in [-bound, bound)
  Tensor constant(const Shape& shape, float value);
  // He et al. 2015 for a convolution (K, R, S, C / groups) followed by ReLU, preserving the
  // variance of gradients: deviation sqrt(2 / (K * R * S)). With time, (K, T, R, S, C),
  // likewise.
  Tensor kaiming_normal_fan_out(const Shape& weight);

  // A buffer: not trained, not counted.
  static Tensor buffer(const Shape& shape, float value);

 private:
  uint64_t seed_;
  uint32_t next_index_ = 0;
};

// The draws behind it. Element i of parameter `index` takes word i % 4 of the Philox block
// {i / 4, 0, index, kParameterStream}; normals are Box-Muller over word pairs, in double.
inline constexpr uint32_t kParameterStream = 0x50415241;
std::vector<float> draw_normal(uint64_t seed, uint32_t index, int64_t count, double deviation);
std::vector<float> draw_uniform(uint64_t seed, uint32_t index, int64_t count, double bound);

// A float32 tensor of one value that is not the result of an operator, so it is never evicted.
Tensor upload_constant(const Shape& shape, float value, Category category, const char* name);

}  // namespace tidemark
