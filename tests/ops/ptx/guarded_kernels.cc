#include "tests/ops/ptx/guarded_kernels.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "ops/register.h"
#include "ops/register_cuda.h"
#include "ops/registry/kernels.h"
#include "tests/support/ptx/library.h"

namespace tidemark {
namespace {

// From a tensor's lowest element to the end of its highest.
void add_tensor(ptx::GlobalMemory& memory, const TensorMeta& meta, std::byte* first,
                bool writable, const std::string& name) {
  if (meta.shape.elements() == 0) return;
  int64_t low = 0, high = 0;
  for (size_t i = 0; i < meta.shape.rank(); ++i) {
    const int64_t reach = (meta.shape[i] - 1) * meta.strides[i];
    (reach < 0 ? low : high) += reach;
  }
  const int64_t size = size_of(meta.dtype).count();
  memory.add(first + low * size, (high - low + 1) * size, writable, name);
}

ptx::GlobalMemory memory_of(const OpDef& op, const KernelArgs& args, Bytes workspace) {
  ptx::GlobalMemory memory;
  const std::string name = op.name;
  for (size_t i = 0; i < args.inputs.size(); ++i) {
    add_tensor(memory, args.input_metas[i], args.inputs[i], op.writes(i),
               name + "'s input " + std::to_string(i));
  }
  for (size_t i = 0; i < args.outputs.size(); ++i) {
    add_tensor(memory, args.output_metas[i], args.outputs[i], true,
               name + "'s output " + std::to_string(i));
  }
  if (workspace > Bytes(0)) {
    memory.add(args.workspace, workspace.count(), true, name + "'s workspace");
  }
  return memory;
}

PreparedKernel prepare_guarded(const OpDef& op, const OpQuery& query) {
  PreparedKernel kernel = find_kernel(op, Backend::kCuda)(query);
  kernel.run = [&op, run = std::move(kernel.run),
                bytes = kernel.workspace](const KernelArgs& args) {
    const ptx::GlobalScope scope(memory_of(op, args, bytes));
    run(args);
  };
  return kernel;
}

// A PrepareKernel is a plain function, so there is one for each place in the list of operators.
constexpr size_t kMaxOperators = 256;

template <size_t i>
PreparedKernel prepare_operator(const OpQuery& query) {
  return prepare_guarded(*all_operators()[i], query);
}

template <size_t... i>
constexpr std::array<PrepareKernel, sizeof...(i)> prepare_functions(std::index_sequence<i...>) {
  return {prepare_operator<i>...};
}

}  // namespace

void register_guarded_kernels() {
#define TIDEMARK_CUDA_KERNELS(stem) register_##stem##_cuda();
#include "ops/operators.inc"
  static constexpr auto kPrepare = prepare_functions(std::make_index_sequence<kMaxOperators>());
  const auto operators = all_operators();
  for (size_t i = 0; i < operators.size(); ++i) {
    if (find_kernel(*operators[i], Backend::kCuda)) {
      set_kernel(*operators[i], Backend::kCpu, kPrepare.at(i));
    }
  }
}

}  // namespace tidemark
