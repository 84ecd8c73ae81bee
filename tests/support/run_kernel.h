// Runs an operator's CPU kernel on plain vectors, without a session, the way the dispatcher
// would: infer, prepare, run. The workspace and the outputs end in guards, which must come back
// untouched.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "ops/registry/op.h"

namespace tidemark::testing {

// Values of float32, or the bytes of another type, with their shape.
struct Array {
  Shape shape;
  std::vector<float> values;

  static Array random(const Shape& shape, uint32_t seed, float low = -1, float high = 1) {
    std::mt19937 generator(seed);
    std::uniform_real_distribution<float> draw(low, high);
    Array array{shape, std::vector<float>(static_cast<size_t>(shape.elements()))};
    for (float& value : array.values) value = draw(generator);
    return array;
  }
  static Array filled(const Shape& shape, float value) {
    return {shape, std::vector<float>(static_cast<size_t>(shape.elements()), value)};
  }
  float operator[](size_t i) const { return values[i]; }
};

// A block as the arena would give: aligned to kAlignment, with a guard behind it.
class GuardedBlock {
 public:
  explicit GuardedBlock(Bytes bytes)
      : bytes_(static_cast<size_t>(bytes.count())),
        memory_(static_cast<std::byte*>(std::aligned_alloc(
            static_cast<size_t>(kAlignment.count()),
            static_cast<size_t>((align_up(bytes) + 2 * kAlignment).count())))) {
    // Not zero: a kernel must not count on what it finds.
    std::memset(memory_.get(), 0xFF, bytes_);
    std::memset(memory_.get() + bytes_, kGuard, kGuardBytes);
  }
  std::byte* data() const { return memory_.get(); }
  bool intact() const {
    for (size_t i = 0; i < kGuardBytes; ++i) {
      if (memory_.get()[bytes_ + i] != std::byte{kGuard}) return false;
    }
    return true;
  }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  static constexpr int kGuard = 0x5A;
  static constexpr size_t kGuardBytes = 512;
  size_t bytes_;
  std::unique_ptr<std::byte, Free> memory_;
};

struct KernelRun {
  std::vector<TensorMeta> metas;  // of the outputs
  std::vector<Array> outputs;     // other types than float32 as their bytes
  std::vector<Array> inputs;      // after the run, for operators that write in place
  Bytes workspace{0};

  const Array& operator[](size_t i) const { return outputs[i]; }
};

// Inputs are float32, or of `dtypes` where given.
inline KernelRun run_kernel(const OpDef& op, const std::vector<Array>& inputs,
                            const Attrs& attrs = {}, int threads = 2,
                            const std::vector<DType>& dtypes = {},
                            const Scalars& scalars = {}) {
  KernelRun run;
  std::vector<TensorMeta> metas;
  std::vector<GuardedBlock> blocks;
  std::vector<std::byte*> in, out;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const DType dtype = i < dtypes.size() ? dtypes[i] : DType::kFloat32;
    metas.push_back(TensorMeta::contiguous(dtype, inputs[i].shape));
    blocks.emplace_back(metas.back().bytes());
    std::memcpy(blocks.back().data(), inputs[i].values.data(),
                static_cast<size_t>(metas.back().bytes().count()));
    in.push_back(blocks.back().data());
  }
  run.metas = op.infer({metas, {}, attrs, threads});
  const OpQuery query{metas, run.metas, attrs, threads};
  for (const TensorMeta& meta : run.metas) {
    blocks.emplace_back(meta.bytes());
    out.push_back(blocks.back().data());
  }
  const PreparedKernel kernel = op.prepare[static_cast<size_t>(Backend::kCpu)](query);
  run.workspace = kernel.workspace;
  blocks.emplace_back(kernel.workspace);
  kernel.run({metas, run.metas, in, out, blocks.back().data(), attrs, scalars, nullptr});
  for (const GuardedBlock& block : blocks) EXPECT_TRUE(block.intact()) << op.name;
  const auto take = [](const TensorMeta& meta, const std::byte* from) {
    const auto bytes = static_cast<size_t>(meta.bytes().count());
    Array array{meta.shape, std::vector<float>((bytes + 3) / 4)};
    std::memcpy(array.values.data(), from, bytes);
    return array;
  };
  for (size_t i = 0; i < out.size(); ++i) run.outputs.push_back(take(run.metas[i], out[i]));
  for (size_t i = 0; i < in.size(); ++i) run.inputs.push_back(take(metas[i], in[i]));
  return run;
}

// `a` and `b` are the same to the bit.
inline bool same_bits(const Array& a, const Array& b) {
  return a.shape == b.shape && a.values.size() == b.values.size() &&
         std::memcmp(a.values.data(), b.values.data(), a.values.size() * 4) == 0;
}

inline void expect_near(const Array& actual, const std::vector<double>& expected,
                        double tolerance, const char* what) {
  ASSERT_EQ(actual.values.size(), expected.size()) << what;
  double scale = 1;
  for (double value : expected) scale = std::max(scale, std::abs(value));
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(actual.values[i], expected[i], tolerance * scale)
        << what << ", element " << i << " of " << actual.shape.to_string();
  }
}

}  // namespace tidemark::testing
