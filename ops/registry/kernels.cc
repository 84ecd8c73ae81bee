#include "ops/registry/kernels.h"

#include <array>
#include <mutex>
#include <unordered_map>

namespace tidemark {
namespace {

struct Kernel {
  PrepareKernel prepare = nullptr;
  ListAlgorithms algorithms = nullptr;
};

struct Table {
  std::mutex mutex;
  std::unordered_map<const OpDef*, std::array<Kernel, kBackendCount>> kernels;
};

Table& table() {
  static Table& instance = *new Table;
  return instance;
}

Kernel find(const OpDef& op, Backend backend) {
  const size_t i = static_cast<size_t>(backend);
  {
    const std::scoped_lock lock(table().mutex);
    const auto found = table().kernels.find(&op);
    if (found != table().kernels.end() && found->second[i].prepare) return found->second[i];
  }
  return {op.prepare[i], op.algorithms[i]};
}

}  // namespace

void set_kernel(const OpDef& op, Backend backend, PrepareKernel prepare,
                ListAlgorithms algorithms) {
  const std::scoped_lock lock(table().mutex);
  table().kernels[&op][static_cast<size_t>(backend)] = {prepare, algorithms};
}

PrepareKernel find_kernel(const OpDef& op, Backend backend) {
  return find(op, backend).prepare;
}

ListAlgorithms find_algorithms(const OpDef& op, Backend backend) {
  const Kernel kernel = find(op, backend);
  const auto modelled = op.algorithms[static_cast<size_t>(Backend::kModel)];
  return kernel.prepare ? kernel.algorithms : modelled;
}

}  // namespace tidemark
