// Chooses nothing, ever, so that all room is made by the last resort (residency/space.cc): the
// stalest first, by fixed rules. Slow, and on ample tiers it completes wherever anything can:
// that is how the smallest budget is found (runtime/session/dry_run.h).
#include "runtime/policy/indexed_policy.h"
#include "runtime/policy/registry.h"

namespace tidemark {
namespace {

class AusterePolicy final : public IndexedPolicy {
 public:
  Storage* choose(const MemoryView& /*view*/) override { return nullptr; }
};

}  // namespace

std::unique_ptr<ReleasePolicy> make_austere_policy(const PolicySettings& /*settings*/) {
  return std::make_unique<AusterePolicy>();
}

}  // namespace tidemark
