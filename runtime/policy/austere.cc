// Never chooses anything, so the last resort (residency/space.cc) makes all space: it releases
// the stalest first, by fixed rules. This is slow but, with ample tiers, completes wherever any
// policy can. Dry runs find the smallest budget with it (runtime/session/dry_run.h).
#include "runtime/policy/indexed_policy.h"
#include "runtime/policy/registry.h"

namespace tidemark {
namespace {

class LastResortPolicy final : public IndexedPolicy {
 public:
  Storage* choose(const MemoryView& /*view*/) override { return nullptr; }
};

}  // namespace

std::unique_ptr<ReleasePolicy> make_austere_policy(const PolicySettings& /*settings*/) {
  return std::make_unique<LastResortPolicy>();
}

}  // namespace tidemark
