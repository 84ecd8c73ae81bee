#include "ops/registry/kernels.h"

#include <array>
#include <mutex>
#include <unordered_map>

namespace tidemark {
namespace {

struct Table {
  std::mutex mutex;
  std::unordered_map<const OpDef*, std::array<PrepareKernel, kBackendCount>> kernels;
};

Table& table() {
  static Table& instance = *new Table;
  return instance;
}

}  // namespace

void set_kernel(const OpDef& op, Backend backend, PrepareKernel prepare) {
  const std::scoped_lock lock(table().mutex);
  table().kernels[&op][static_cast<size_t>(backend)] = prepare;
}

PrepareKernel find_kernel(const OpDef& op, Backend backend) {
  const size_t i = static_cast<size_t>(backend);
  {
    const std::scoped_lock lock(table().mutex);
    const auto found = table().kernels.find(&op);
    if (found != table().kernels.end() && found->second[i]) return found->second[i];
  }
  return op.prepare[i];
}

}  // namespace tidemark
