// Runs an operator's kernel on plain vectors without a session, as the dispatcher would: infer,
// prepare, run. The workspace and the outputs end in guards, which must stay untouched. On the
// CPU the kernel is called directly; on other devices it runs through Device.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "ops/registry/kernels.h"
#include "ops/registry/op.h"
#include "runtime/device/device.h"
#include "tests/support/device_under_test.h"
#include "tests/support/machine.h"

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

// A block such as the arena gives: aligned to kAlignment, with a guard behind it.
class GuardedBlock {
 public:
  explicit GuardedBlock(Bytes bytes)
      : bytes_(static_cast<size_t>(bytes.count())),
        memory_(static_cast<std::byte*>(std::aligned_alloc(
            static_cast<size_t>(kAlignment.count()),
            static_cast<size_t>((align_up(bytes) + 2 * kAlignment).count())))) {
    // Not zero: a kernel must not rely on earlier contents.
    std::memset(memory_.get(), 0xFF, bytes_);
    std::memset(memory_.get() + bytes_, kGuard, kGuardBytes);
  }
  std::byte* data() const { return memory_.get(); }
  // Size with the guard, rounded up to kAlignment.
  Bytes total() const { return align_up(Bytes(static_cast<int64_t>(bytes_))) + kAlignment; }
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
  std::vector<TensorMeta> metas;  // the outputs'
  std::vector<Array> outputs;     // as bytes for types other than float32
  std::vector<Array> inputs;      // after the run, for operators that write in place
  Bytes workspace{0};

  const Array& operator[](size_t i) const { return outputs[i]; }
};

// One device per name for the whole program, never destroyed.
inline Device& device_named(const std::string& name) {
  static auto& devices = *new std::map<std::string, std::unique_ptr<Device>>;
  std::unique_ptr<Device>& device = devices[name];
  if (!device) device = make_device(name);
  return *device;
}

// Copies of the blocks on a device: their addresses there, and the way back.
class BlocksOnDevice {
 public:
  BlocksOnDevice(Device& device, std::vector<GuardedBlock>& blocks)
      : device_(device), blocks_(blocks) {
    Bytes total{0};
    for (const GuardedBlock& block : blocks) {
      offsets_.push_back(total.count());
      total += block.total();
    }
    region_ = device.map(MemoryKind::kDevice, total);
    Fence fence;
    for (size_t i = 0; i < blocks.size(); ++i) {
      fence.include(
          device.copy(StreamId::kReload, {at(i), blocks[i].data(), blocks[i].total(), 0}));
    }
    device.wait(StreamId::kCompute, fence);
  }
  std::byte* at(size_t i) const { return region_->data() + offsets_[i]; }
  void fetch(Event computed) {
    device_.wait(StreamId::kOffload, computed);
    Fence fence;
    for (size_t i = 0; i < blocks_.size(); ++i) {
      fence.include(
          device_.copy(StreamId::kOffload, {blocks_[i].data(), at(i), blocks_[i].total(), 0}));
    }
    device_.synchronize(fence);
  }

 private:
  Device& device_;
  std::vector<GuardedBlock>& blocks_;
  std::vector<int64_t> offsets_;
  std::unique_ptr<MemoryRegion> region_;
};

struct KernelOptions {
  int threads = test_threads();
  std::vector<DType> dtypes{};  // the inputs'; float32 where none is given
  Scalars scalars{};
  bool tf32 = false;
  std::optional<size_t> place{};  // the input that output 0 overwrites; none: it has a place
  std::string device = device_under_test();
};

inline KernelRun run_kernel_with(const KernelOptions& options, const OpDef& op,
                                 const std::vector<Array>& inputs, const Attrs& attrs = {}) {
  KernelRun run;
  std::vector<TensorMeta> metas;
  std::vector<GuardedBlock> blocks;  // inputs, outputs, workspace
  for (size_t i = 0; i < inputs.size(); ++i) {
    const DType dtype = i < options.dtypes.size() ? options.dtypes[i] : DType::kFloat32;
    metas.push_back(TensorMeta::contiguous(dtype, inputs[i].shape));
    blocks.emplace_back(metas.back().bytes());
    std::memcpy(blocks.back().data(), inputs[i].values.data(),
                static_cast<size_t>(metas.back().bytes().count()));
  }
  run.metas = op.infer({metas, {}, attrs, options.threads, options.tf32});
  const OpQuery query{metas, run.metas, attrs, options.threads, options.tf32};
  for (const TensorMeta& meta : run.metas) blocks.emplace_back(meta.bytes());

  const bool cpu = options.device == "cpu";
  const Backend backend = cpu ? Backend::kCpu : device_named(options.device).profile().backend;
  const PrepareKernel prepare = find_kernel(op, backend);
  if (!prepare) throw UsageError(std::string(op.name) + " has no kernel on " + options.device);
  const PreparedKernel kernel = prepare(query);
  run.workspace = kernel.workspace;
  blocks.emplace_back(kernel.workspace);

  const auto block_of_output = [&](size_t i) {
    return i == 0 && options.place ? *options.place : metas.size() + i;
  };
  const auto launch = [&](const auto& address, void* native_stream) {
    std::vector<std::byte*> in, out;
    for (size_t i = 0; i < metas.size(); ++i) in.push_back(address(i));
    for (size_t i = 0; i < run.metas.size(); ++i) out.push_back(address(block_of_output(i)));
    kernel.run({metas, run.metas, in, out, address(blocks.size() - 1), attrs, options.scalars,
                native_stream});
  };
  if (cpu) {
    launch([&](size_t i) { return blocks[i].data(); }, nullptr);
  } else {
    Device& device = device_named(options.device);
    BlocksOnDevice there(device, blocks);
    const auto work = [&](void* stream) {
      launch([&](size_t i) { return there.at(i); }, stream);
    };
    there.fetch(device.enqueue(StreamId::kCompute, {work, Nanos(0), 0}));
  }
  for (const GuardedBlock& block : blocks) EXPECT_TRUE(block.intact()) << op.name;
  const auto take = [](const TensorMeta& meta, const std::byte* from) {
    const auto bytes = static_cast<size_t>(meta.bytes().count());
    Array array{meta.shape, std::vector<float>((bytes + 3) / 4)};
    std::memcpy(array.values.data(), from, bytes);
    return array;
  };
  for (size_t i = 0; i < metas.size(); ++i) {
    run.inputs.push_back(take(metas[i], blocks[i].data()));
  }
  for (size_t i = 0; i < run.metas.size(); ++i) {
    run.outputs.push_back(take(run.metas[i], blocks[block_of_output(i)].data()));
  }
  return run;
}

// Inputs are float32, or have the given `dtypes`.
inline KernelRun run_kernel(const OpDef& op, const std::vector<Array>& inputs,
                            const Attrs& attrs = {}, int threads = test_threads(),
                            const std::vector<DType>& dtypes = {},
                            const Scalars& scalars = {}) {
  return run_kernel_with({.threads = threads, .dtypes = dtypes, .scalars = scalars}, op, inputs,
                         attrs);
}

// Whether `a` and `b` are equal to the bit.
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
