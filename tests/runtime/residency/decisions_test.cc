// A policy's decisions are carried out one at a time, and the policy is told the outcome of
// each.
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/errors.h"
#include "runtime/residency/residency.h"

namespace tidemark::testing {
namespace {

using What = Decision::What;

// Gives prepared answers, in order.
class Answers final : public ReleasePolicy {
 public:
  void add(Storage&) override {}
  void remove(Storage&) override {}
  void touch(Storage&) override {}
  Storage* choose(const MemoryView&) override { return nullptr; }
  Action decide(const MemoryView&, Storage&) override { return Action::kOffload; }
  bool recompute_offloaded(const MemoryView&, Storage&) override { return false; }
  bool may_release_now(const MemoryView&) const override { return true; }
  void on_event(const StorageEvent& event) noexcept override {
    if (event.kind == StorageEvent::Kind::kIssued) outcomes += "issued ";
  }
  Decision after_operator(const MemoryView&, Outcome last) override {
    outcomes += last == Outcome::kNone ? "" : last == Outcome::kDone ? "done " : "impossible ";
    if (fails && last != Outcome::kNone) throw UsageError("a policy's own");
    if (answers.empty()) return {};
    const Decision next = answers.front();
    answers.pop_front();
    return next;
  }

  std::deque<Decision> answers;
  std::string outcomes;
  bool fails = false;
};

class Call final : public Recipe {
 public:
  const char* name() const override { return "call"; }
  Event launch(Device& device, const Addresses&, uint64_t tag) override {
    return device.enqueue(StreamId::kCompute, {[](void*) {}, Nanos(1), tag});
  }
};

DeviceProfile profile() {
  DeviceProfile profile;
  profile.memory = kAlignment * 64;
  profile.float32_flops = profile.memory_bandwidth = 1e9;
  profile.offload_bandwidth = profile.reload_bandwidth = 1e9;
  return profile;
}

class DecisionsTest : public ::testing::Test {
 protected:
  StorageUse compute(const std::vector<StorageUse>& inputs) {
    auto call = make_intrusive<Call>();
    for (const StorageUse& input : inputs) call->inputs.push_back({input.ptr(), 0, false});
    StorageUse out(residency_.storages().create(kAlignment, Category::kActivation, "new"));
    call->outputs.push_back({out.get(), out->bytes()});
    call->cost_key = costs_.key(1, {});
    residency_.execute(call);
    return out;
  }
  StorageUse upload() {
    StorageUse block(residency_.storages().create(kAlignment, Category::kData, "block"));
    residency_.upload(*block, nullptr, nullptr);
    return block;
  }
  void answer(What what, const StorageUse& storage) {
    policy_.answers.push_back({what, storage.get(), Reason::kEarlyStart});
  }

  Answers policy_;
  std::unique_ptr<Device> device_ = make_sim_device(profile());
  Arena arena_{*device_, MemoryKind::kDevice, kAlignment * 32};
  std::unique_ptr<Tier> host_ = make_host_tier(*device_, kAlignment * 64);
  CostModel costs_{profile()};
  EventLog log_;
  Residency residency_{*device_, arena_, {host_.get()}, costs_, log_, policy_, {}};
};

TEST_F(DecisionsTest, AreDoneOneAfterTheOther) {
  const StorageUse x = upload();
  const StorageUse a = compute({x}), b = compute({x}), c = compute({x}), d = compute({x});
  policy_.outcomes.clear();
  answer(What::kEvict, a);
  answer(What::kEvict, a);  // it is already evicted
  answer(What::kCopyOut, b);
  answer(What::kOffload, c);
  answer(What::kPrefetch, c);
  answer(What::kPrefetch, d);  // it is already resident
  answer(What::kRelease, d);
  const StorageUse e = compute({x});
  EXPECT_EQ(policy_.outcomes, "issued done impossible done done done impossible done ");
  EXPECT_EQ(a->residence(), Residence::kEvicted);
  EXPECT_TRUE(residency_.view().has_copy(*b));
  EXPECT_TRUE(residency_.view().has_copy(*c));
  EXPECT_EQ(d->residence(), Residence::kOffloaded) << "as the director says";
  EXPECT_TRUE(e->resident());
}

// A call stands even if the policy throws afterwards; the next moment begins anew.
TEST_F(DecisionsTest, AnExceptionEndsTheMoment) {
  const StorageUse x = upload();
  const StorageUse a = compute({x}), b = compute({x});
  policy_.outcomes.clear();
  policy_.fails = true;
  answer(What::kEvict, a);
  answer(What::kEvict, b);
  EXPECT_TRUE(compute({x})->resident());
  policy_.fails = false;
  EXPECT_TRUE(b->resident());
  compute({x});
  EXPECT_EQ(policy_.outcomes, "issued done issued done ");
  EXPECT_EQ(b->residence(), Residence::kEvicted);
}

}  // namespace
}  // namespace tidemark::testing
