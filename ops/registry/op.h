// An operator's description: name, shapes, costs, and a kernel for each backend.
//
// A new operator adds files with one stem to a folder: `softmax.h` (the function people call),
// `softmax.cc` (this description and the gradient), `softmax_cpu.cc`, `softmax_cuda.cu`; and
// its lines to ops/operators.inc. The dispatcher then provides managed memory, recomputation,
// cost estimates, capture and simulation; the operator needs no code for them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/registry/attrs.h"
#include "runtime/core/units.h"
#include "runtime/cost/cost_model.h"
#include "runtime/device/profile.h"
#include "runtime/tensor/tensor.h"

namespace tidemark {

// Everything known about a call before it runs.
struct OpQuery {
  std::span<const TensorMeta> inputs;
  std::span<const TensorMeta> outputs;  // empty during shape inference
  const Attrs& attrs;
  int threads = 1;  // of the compute stream; part of the signature
  // Float32 products may take inputs rounded to TF32 (SessionOptions::tf32); part of the
  // signature.
  bool tf32 = true;
  // One of the names that OpDef::algorithms lists; empty: the default. Part of the signature.
  std::string_view algorithm{};

  template <class T>
  const T& attr() const {
    return attrs.as<T>();
  }
};

struct KernelArgs {
  std::span<const TensorMeta> input_metas;
  std::span<const TensorMeta> output_metas;
  std::span<std::byte* const> inputs;  // each tensor's first element (offset applied)
  std::span<std::byte* const> outputs;
  std::byte* workspace;  // aligned to kAlignment; contents undefined
  const Attrs& attrs;
  const Scalars& scalars;
  void* native_stream;  // cudaStream_t on CUDA

  template <class T>
  const T* in(size_t i) const {
    return reinterpret_cast<const T*>(inputs[i]);
  }
  template <class T>
  T* out(size_t i) const {
    return reinterpret_cast<T*>(outputs[i]);
  }
  // An input that the operator writes in place (OpDef::written_inputs).
  template <class T>
  T* inout(size_t i) const {
    return reinterpret_cast<T*>(inputs[i]);
  }
  template <class T>
  const T& attr() const {
    return attrs.as<T>();
  }
};

// A kernel prepared for one signature: algorithm chosen, library descriptors built. It is made
// once, kept for the process and shared by all calls with that signature. `run` is called on
// the compute stream's thread. Expensive set-up that only running needs (code generation)
// belongs in the first call of `run`: a dry run prepares kernels only to learn their workspace.
struct PreparedKernel {
  Bytes workspace{0};
  std::function<void(const KernelArgs&)> run;
  // For Work::launches. Shared by copies.
  std::shared_ptr<std::atomic<int64_t>> launches = std::make_shared<std::atomic<int64_t>>(0);
};

// The choice depends on the query alone, never on timing or on free memory.
using PrepareKernel = PreparedKernel (*)(const OpQuery&);
// The names of a call's other algorithms, which round differently
// (runtime/session/algorithms.h).
using ListAlgorithms = std::vector<std::string> (*)(const OpQuery&);

// A call's other implementations: ops/registry/op_call.h.
class OpCall;
struct OtherCall;
using ListVariants = std::vector<OtherCall> (*)(const OpCall& call);

struct OpDef {
  const char* name;
  // Output shapes. Throws UsageError, with a message that starts with "[name] ", if the inputs
  // do not fit.
  std::vector<TensorMeta> (*infer)(const OpQuery&);
  OpCost (*cost)(const OpQuery&);
  // Workspace on devices whose kernels are not available (the simulator's GPU profiles). Null:
  // the operator needs none.
  Bytes (*modelled_workspace)(const OpQuery&) = nullptr;
  // Bit i: input i is written in place. Such an operator cannot be recomputed.
  uint32_t written_inputs = 0;
  // For operators that take any number of input groups: the size of a group. The bits of
  // written_inputs then apply to each group. 0: they apply to the whole call, and inputs beyond
  // the last bit are only read.
  uint32_t input_group = 0;
  // Bit i: output 0 may share the memory of input i, provided that both have the same type and
  // shape and no gaps. On every device, element j of all such inputs is then read before
  // element j of the output is written, and not after. A plan may place both at the same
  // offset.
  uint32_t may_overwrite = 0;
  PrepareKernel prepare[kBackendCount] = {};
  // Null: only the default. kModel: where the kernels are not available. `cost`, `prepare` and
  // `modelled_workspace` take the query's algorithm.
  ListAlgorithms algorithms[kBackendCount] = {};
  // Calls that give the same outputs to the same bits, from other tensors. Null: there are
  // none.
  ListVariants variants = nullptr;

  bool writes(size_t input) const {
    const size_t bit = input_group > 0 ? input % input_group : input;
    return bit < 32 && (written_inputs >> bit & 1) != 0;
  }
  bool overwrites(size_t input) const {
    return input < 32 && (may_overwrite >> input & 1) != 0;
  }
};

// An operator that writes only its outputs, each to memory of its own.
constexpr OpDef define_op(const char* name, decltype(OpDef::infer) infer,
                          decltype(OpDef::cost) cost, PrepareKernel prepare_cpu,
                          decltype(OpDef::modelled_workspace) modelled_workspace = nullptr,
                          ListAlgorithms algorithms_cpu = nullptr,
                          ListAlgorithms modelled_algorithms = nullptr) {
  return {.name = name,
          .infer = infer,
          .cost = cost,
          .modelled_workspace = modelled_workspace,
          .prepare = {prepare_cpu},
          .algorithms = {algorithms_cpu, nullptr, modelled_algorithms}};
}

// The usual kernel, which needs no workspace and no preparation.
//   define_op("relu", infer, cost, simple_kernel<relu_cpu>)
template <void (*run)(const KernelArgs&)>
PreparedKernel simple_kernel(const OpQuery&) {
  return {Bytes(0), run};
}

}  // namespace tidemark
