// A contiguous float32 tensor rounded to bfloat16, for libraries that take a bias of the
// result's type.
#pragma once

#include "ops/kernels/map_cuda.cuh"

namespace tidemark {

struct RoundToResult {
  TIDEMARK_HOST_DEVICE float operator()(float x) const { return x; }
};

class RoundedCopy {
 public:
  explicit RoundedCopy(const TensorMeta& given)
      : rounded_(TensorMeta::contiguous(DType::kBFloat16, given.shape)),
        loop_(pack(make_loop(given.shape, {&rounded_, &given}), {rounded_, given})) {}

  Bytes bytes() const { return rounded_.bytes(); }
  // Copies an input to `to`, which starts at a multiple of 16 bytes.
  void run(const KernelArgs& args, size_t input, BFloat16* to) const {
    apply_cuda<kWalkFlat>(loop_, args, detail::Assign<RoundToResult>{}, Writes<BFloat16>{to},
                          Reads<const float>{args.in<float>(input)});
  }

 private:
  TensorMeta rounded_;
  PackedLoop loop_;
};

}  // namespace tidemark
