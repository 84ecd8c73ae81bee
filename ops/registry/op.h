// What an operator is: a name, shapes, costs, and a kernel for each backend.
//
// A new operator is one folder entry with one stem: `softmax.h` (the function people call),
// `softmax.cc` (this description and the gradient), `softmax_cpu.cc`, `softmax_cuda.cu`; and
// its lines in ops/operators.inc. It gets managed memory, recomputation, pricing, capture and
// simulation from the dispatcher, without a line of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ops/registry/attrs.h"
#include "runtime/core/units.h"
#include "runtime/cost/cost_model.h"
#include "runtime/device/profile.h"
#include "runtime/tensor/tensor.h"

namespace tidemark {

// What is known of a call before it runs.
struct OpQuery {
  std::span<const TensorMeta> inputs;
  std::span<const TensorMeta> outputs;  // empty while they are being inferred
  const Attrs& attrs;
  int threads = 1;  // of the compute stream; part of the signature
  // Float32 products may take inputs rounded to TF32 (SessionOptions::tf32); part of the
  // signature.
  bool tf32 = true;

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

// A kernel made ready for one signature: algorithm chosen, library descriptors built. Made
// once, kept for the process and shared by all calls of the signature. `run` is called on the
// compute stream's thread; expensive set-up that only running needs (code generation) belongs
// in its first call, since a dry run prepares kernels for their workspace alone.
struct PreparedKernel {
  Bytes workspace{0};
  std::function<void(const KernelArgs&)> run;
};

// Chosen by the query alone: never by timing, nor by the memory that happens to be free.
using PrepareKernel = PreparedKernel (*)(const OpQuery&);

struct OpDef {
  const char* name;
  // Output shapes. Throws UsageError, message starting with "[name] ", for inputs that do not
  // fit.
  std::vector<TensorMeta> (*infer)(const OpQuery&);
  OpCost (*cost)(const OpQuery&);
  // Scratch on devices whose kernels are not at hand (the simulator's GPU profiles); null:
  // none.
  Bytes (*modelled_workspace)(const OpQuery&) = nullptr;
  // Bit i: input i is written in place. Such an operator cannot be run again.
  uint32_t written_inputs = 0;
  // For operators that take any number of groups of so many inputs: the bits are of each group.
  // 0: of the call; inputs beyond the bits are only read.
  uint32_t input_group = 0;
  // Bit i: output 0 may lie where input i lies, if the two are of one type and shape and
  // gapless: on every device element j of all such inputs is read before element j of the
  // output is written, and not after. A plan may then give both one place.
  uint32_t may_overwrite = 0;
  PrepareKernel prepare[kBackendCount] = {};

  bool writes(size_t input) const {
    const size_t bit = input_group > 0 ? input % input_group : input;
    return bit < 32 && (written_inputs >> bit & 1) != 0;
  }
  bool overwrites(size_t input) const {
    return input < 32 && (may_overwrite >> input & 1) != 0;
  }
};

// The usual kernel: no scratch, nothing to prepare.
//   .prepare = {simple_kernel<relu_cpu>}
template <void (*run)(const KernelArgs&)>
PreparedKernel simple_kernel(const OpQuery&) {
  return {Bytes(0), run};
}

}  // namespace tidemark
