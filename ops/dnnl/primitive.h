// A wrapper of oneDNN for Tidemark's CPU kernels.
//
// The operator's workspace holds everything a primitive needs besides its tensors: its
// scratchpad (scratchpad_mode::user) and reordered copies of weights. Activations are NHWC and
// are never reordered.
//
// Threads: any thread may construct; any thread may run, several at a time.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <oneapi/dnnl/dnnl.hpp>
#include <span>
#include <vector>

#include "ops/kernels/cpu_isa.h"
#include "ops/registry/op.h"
#include "runtime/core/dtype.h"
#include "runtime/core/units.h"
#include "runtime/device/cpu/team.h"
#include "runtime/tensor/tensor.h"

namespace tidemark::onednn {

// Keeps oneDNN from using AMX tiles that do not work, and logs this. Call before any other use
// of oneDNN; engine() calls it with cpu_facts(). Throws UsageError if called too late.
void hide_broken_tiles(const CpuFacts& facts);

const dnnl::engine& engine();
// Attributes that take the scratchpad from the caller. Call again before each primitive
// description: throws HostMemoryError if making one would exhaust memory.
const dnnl::primitive_attr& attributes();
// The same, for a primitive that adds its result to its output.
const dnnl::primitive_attr& adding_attributes();

// The parts of a workspace, one after another, each aligned to a cache line.
class WorkspaceLayout {
 public:
  // Adds a part and returns its offset in the workspace.
  size_t add(Bytes bytes) {
    const Bytes start = total_;
    total_ += align_up(bytes, Bytes(64));
    return static_cast<size_t>(start.count());
  }
  Bytes total() const { return total_; }

 private:
  Bytes total_{0};
};

// REQUIRES: float32 or bfloat16.
dnnl::memory::data_type data_type(DType dtype);
// Throws UsageError, naming the operator, for bfloat16 on a processor without AVX-512: oneDNN
// has no bfloat16 kernels for it.
void require_kernels(const char* op, DType dtype);

// A batch of images (N, H, W, C) or clips (N, D, H, W, C), with dimensions in oneDNN's order: C
// after N.
dnnl::memory::desc nhwc(const TensorMeta& images);
dnnl::memory::desc vector(int64_t extent);
// The same dimensions; oneDNN chooses the fastest layout.
dnnl::memory::desc any_layout(const dnnl::memory::desc& desc);

// A primitive and its arguments (DNNL_ARG_...), with its scratchpad placed in `layout`. It is
// described for the threads of `use`, and runs with those threads. Describing is quick; the
// first run generates the code, which dry runs do not need.
class Primitive {
 public:
  Primitive(const dnnl::primitive_desc_base& description, std::initializer_list<int> arguments,
            const UseThreads& use, WorkspaceLayout& layout);
  Primitive(const Primitive&) = delete;
  Primitive& operator=(const Primitive&) = delete;

  // The layout that an argument must have.
  dnnl::memory::desc argument(int which) const;
  // Runs on the calling thread's OpenMP team and waits. `pointers` correspond to `arguments`.
  // Throws DeviceError if the team is smaller than the one the primitive was made for.
  void run(std::byte* workspace, std::initializer_list<void*> pointers);

 private:
  dnnl::primitive_desc_base description_;
  int threads_;
  dnnl::memory::desc scratchpad_;
  size_t scratchpad_at_ = 0;
  std::vector<std::pair<int, dnnl::memory::desc>> arguments_;
  std::once_flag once_;
  dnnl::primitive primitive_;
};

// Copies a tensor from one layout to another. Null if the layouts are equal.
std::unique_ptr<Primitive> make_reorder(const dnnl::memory::desc& from,
                                        const dnnl::memory::desc& to, const UseThreads& use,
                                        WorkspaceLayout& layout);

// A primitive whose weight may need another layout, which then lies in the workspace.
struct WeightedPrimitive {
  WorkspaceLayout layout;
  std::unique_ptr<Primitive> primitive;
  std::unique_ptr<Primitive> reorder;  // null: the weight is used in place
  size_t weight_at = 0;

  // `direction`: 1 if the primitive reads the weight, -1 if it writes it.
  WeightedPrimitive(const dnnl::primitive_desc_base& description,
                    std::initializer_list<int> arguments, const dnnl::memory::desc& plain,
                    int weight_argument, int direction, const UseThreads& use);
};

// A kernel that reads its weight: `arguments` are those of inputs 0 and 1 (DNNL_ARG_WEIGHTS, as
// `plain`), output 0 and, if there is a bias, input 2.
PreparedKernel weighted_kernel(const dnnl::primitive_desc_base& description,
                               std::initializer_list<int> arguments,
                               const dnnl::memory::desc& plain, const UseThreads& use);

}  // namespace tidemark::onednn
