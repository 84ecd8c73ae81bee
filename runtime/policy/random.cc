#include <random>
#include <vector>

#include "runtime/policy/indexed_policy.h"
#include "runtime/policy/registry.h"

namespace tidemark {
namespace {

class RandomPolicy final : public IndexedPolicy {
 public:
  explicit RandomPolicy(uint64_t seed) : random_(seed) {}

  Storage* choose(const MemoryView& view) override {
    std::vector<Storage*> candidates;
    index().for_each([&](Storage& storage) {
      if (view.may_release(storage)) candidates.push_back(&storage);
    });
    return candidates.empty() ? nullptr : candidates[random_() % candidates.size()];
  }
  Action decide(const MemoryView& /*view*/, Storage& /*storage*/) override {
    return random_() % 2 == 0 ? Action::kEvict : Action::kOffload;
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace

std::unique_ptr<ReleasePolicy> make_random_policy(const PolicySettings& settings) {
  return std::make_unique<RandomPolicy>(settings.seed);
}

}  // namespace tidemark
