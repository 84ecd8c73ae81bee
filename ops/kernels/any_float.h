// Access to float32 or bfloat16 tensors whose type is known only at run time. The accessor
// converts each element; it suits kernels that touch few elements, or do much work per element,
// and so need not be compiled for each type.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/registry/op.h"
#include "runtime/core/dtype.h"
#include "runtime/core/host_device.h"

namespace tidemark {

struct FloatInput {
  const void* data = nullptr;
  bool bfloat16 = false;

  FloatInput() = default;
  FloatInput(const void* at, DType dtype) : data(at), bfloat16(dtype == DType::kBFloat16) {}
  TIDEMARK_HOST_DEVICE float operator[](int64_t i) const {
    return bfloat16 ? float{static_cast<const BFloat16*>(data)[i]}
                    : static_cast<const float*>(data)[i];
  }
  TIDEMARK_HOST_DEVICE FloatInput operator+(int64_t elements) const {
    FloatInput moved = *this;
    moved.data = static_cast<const char*>(data) + elements * (bfloat16 ? 2 : 4);
    return moved;
  }
};

struct FloatOutput {
  void* data = nullptr;
  bool bfloat16 = false;

  FloatOutput() = default;
  FloatOutput(void* at, DType dtype) : data(at), bfloat16(dtype == DType::kBFloat16) {}
  TIDEMARK_HOST_DEVICE void set(int64_t i, float value) const {
    if (bfloat16) {
      static_cast<BFloat16*>(data)[i] = value;
    } else {
      static_cast<float*>(data)[i] = value;
    }
  }
  TIDEMARK_HOST_DEVICE FloatOutput operator+(int64_t elements) const {
    FloatOutput moved = *this;
    moved.data = static_cast<char*>(data) + elements * (bfloat16 ? 2 : 4);
    return moved;
  }
};

// Input and output i of a call.
inline FloatInput float_input(const KernelArgs& args, size_t i) {
  return {args.inputs[i], args.input_metas[i].dtype};
}
inline FloatOutput float_output(const KernelArgs& args, size_t i) {
  return {args.outputs[i], args.output_metas[i].dtype};
}

}  // namespace tidemark
