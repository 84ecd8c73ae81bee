// One hole from a run of neighbouring blocks: released or slid, whichever costs less. Each
// block has a letter and a given price.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/residency/residency.h"

namespace tidemark::testing {
namespace {

constexpr Bytes kUnit = kAlignment;

// Moving a unit takes 1024 ns; copying one out takes 10,240 ns.
DeviceProfile slow_link_profile() {
  DeviceProfile profile;
  profile.name = "slow link";
  profile.memory = kUnit * 1024;
  profile.float32_flops = 1e9;
  profile.memory_bandwidth = 1e9;
  profile.offload_bandwidth = profile.reload_bandwidth = 5e7;
  profile.duplex_offload_bandwidth = profile.duplex_reload_bandwidth = 5e7;
  profile.disk_write_bandwidth = profile.disk_read_bandwidth = 1e9;
  return profile;
}

// Prices by id. Where storages are chosen one by one, the oldest goes.
class Prices final : public ReleasePolicy {
 public:
  void add(Storage& storage) override {
    if (std::find(known_.begin(), known_.end(), &storage) == known_.end()) {
      known_.push_back(&storage);
    }
  }
  void remove(Storage& storage) override { std::erase(known_, &storage); }
  void touch(Storage&) override {}
  Storage* choose(const MemoryView& view) override {
    ++choices;
    for (Storage* storage : known_) {
      if (view.may_release(*storage)) return storage;
    }
    return nullptr;
  }
  std::optional<Nanos> price(const MemoryView&, Storage& storage) override {
    return prices[storage.id()];
  }
  bool knows_prices() const override { return knows; }
  Action decide(const MemoryView&, Storage&) override { return Action::kOffload; }
  bool recompute_offloaded(const MemoryView&, Storage&) override { return false; }
  bool may_release_now(const MemoryView&) const override { return may_release; }
  void on_event(const StorageEvent& event) noexcept override {
    if (loses_bytes(event)) ++(event.storage->users() > 0 ? evicted : ended);
  }

  std::vector<std::optional<Nanos>> prices{64};
  bool knows = true;
  bool may_release = true;
  int choices = 0;
  int evicted = 0, ended = 0;

 private:
  std::vector<Storage*> known_;
};

class WindowCall final : public Recipe {
 public:
  const char* name() const override { return "call"; }
  Event launch(Device& device, const Addresses&, uint64_t tag) override {
    return device.enqueue(StreamId::kCompute, {[](void*) {}, Nanos(1), tag});
  }
};

class Window {
 public:
  // "aab.c": a letter per unit and block, a dot for an unused unit. Prices per letter, in
  // order; -1: no price.
  Window(const std::string& picture, const std::vector<int64_t>& prices, bool compact = true)
      : device_(make_sim_device(slow_link_profile())),
        arena_(*device_, MemoryKind::kDevice, kUnit * static_cast<int64_t>(picture.size())),
        host_(make_host_tier(*device_, kUnit * 64)),
        costs_(slow_link_profile()),
        residency_(*device_, arena_, {host_.get()}, costs_, log_, policy_,
                   {.compact = compact}) {
    std::vector<StorageUse> gaps;
    for (size_t at = 0; at < picture.size();) {
      size_t end = at;
      while (end < picture.size() && picture[end] == picture[at]) ++end;
      StorageUse block(residency_.storages().create(kUnit * static_cast<int64_t>(end - at),
                                                    Category::kData, "block"));
      residency_.upload(*block, nullptr, nullptr);
      if (picture[at] == '.') {
        gaps.push_back(block);
      } else {
        const int64_t price = prices[blocks_.size()];
        policy_.prices[block->id()] = price < 0 ? std::nullopt : std::optional(Nanos(price));
        blocks_.push_back(block);
      }
      at = end;
    }
  }
  // Makes `units`, for as long as the call takes, in a call that reads `inputs`. Returns a
  // letter for each block that is then resident, a dash for each that is not.
  std::string make(int64_t units, const std::string& inputs = "") {
    auto call = make_intrusive<WindowCall>();
    for (const char letter : inputs) {
      call->inputs.push_back({blocks_[static_cast<size_t>(letter - 'a')].ptr(), 0, false});
    }
    StorageUse out(residency_.storages().create(kUnit * units, Category::kActivation, "new"));
    call->outputs.push_back({out.get(), out->bytes()});
    call->cost_key = costs_.key(1, {});
    residency_.execute(call);
    std::string text;
    for (const StorageUse& block : blocks_) {
      text += static_cast<char>(block->resident() ? 'a' + (&block - blocks_.data()) : '-');
    }
    return text;
  }
  // A storage computed from `inputs`.
  StorageUse compute(const std::vector<StorageUse>& inputs) {
    auto call = make_intrusive<WindowCall>();
    for (const StorageUse& input : inputs) call->inputs.push_back({input.ptr(), 0, false});
    StorageUse out(residency_.storages().create(kUnit, Category::kActivation, "new"));
    call->outputs.push_back({out.get(), out->bytes()});
    residency_.execute(call);
    return out;
  }
  Residency& residency() { return residency_; }
  Prices& policy() { return policy_; }
  const StepStats& stats() const { return residency_.stats(); }

 private:
  Prices policy_;
  std::unique_ptr<Device> device_;
  Arena arena_;
  std::unique_ptr<Tier> host_;
  CostModel costs_;
  EventLog log_;
  Residency residency_;
  std::vector<StorageUse> blocks_;
};

// Two units are needed: c and d could slide for 2048 ns. c costs 100, so it goes instead and
// nothing moves.
TEST(Window, IsReleasedWhereThatCostsLessThanSliding) {
  Window window("ab.cd.e", {100, 100, 100, 100, 100});
  EXPECT_EQ(window.make(2), "a-cde") << "b and the hole behind it";
  EXPECT_EQ(window.stats().compactions, 0);
  EXPECT_EQ(window.stats().offloads, 1);
  EXPECT_EQ(window.policy().choices, 0);
}

TEST(Window, IsSlidWhereThatCostsLess) {
  Window window("ab.cd.e", {2048, 2048, 2048, 2048, 2048});
  EXPECT_EQ(window.make(2), "abcde");
  EXPECT_EQ(window.stats().compactions, 1);
  EXPECT_EQ(window.stats().offloads, 0);
}

TEST(Window, IsTheCheapestRun) {
  // a b: 30; b c: 25; c d: 45; d e: 60; e: 20 with the hole.
  Window all("abcde", {20, 10, 15, 30, 30});
  EXPECT_EQ(all.make(2), "a--de");
  Window one("abcde.", {20, 10, 15, 30, 20});
  EXPECT_EQ(one.make(2), "abcd-");
  // Whole blocks: b alone frees 3 units.
  Window large("abbbc", {20, 50, 20});
  EXPECT_EQ(large.make(2), "a-c");
  Window larger("abbbc", {20, 50, 20});
  EXPECT_EQ(larger.make(4), "--c");
}

// Inputs of the call stay in place and cut the arena in two; so do blocks without a price.
TEST(Window, DoesNotCrossWhatIsPinned) {
  Window pinned("abcde", {1, 1, 1, 50, 60});
  EXPECT_EQ(pinned.make(2, "b"), "ab--e");
  Window unpriced("abcde", {1, -1, 1, 50, 60});
  EXPECT_EQ(unpriced.make(2), "ab--e");
  EXPECT_EQ(unpriced.policy().choices, 0);
}

// A block that costs nothing is not released needlessly.
TEST(Window, TakesNoMoreThanItNeeds) {
  Window window("abcde", {0, 0, 0, 0, 0});
  const std::string left = window.make(1);
  EXPECT_EQ(std::count(left.begin(), left.end(), '-'), 1) << left;
  Window large("abbc", {0, 10, 5});
  EXPECT_EQ(large.make(2), "a-c") << "a is no part of it";
}

TEST(Window, WithoutSlidingThereIsNothingToCompareItWith) {
  Window window("ab.cd.e", {9000, 9000, 9000, 9000, 9000}, /*slide=*/false);
  EXPECT_EQ(window.make(2), "a-cde");
  EXPECT_EQ(window.stats().compactions, 0);
  EXPECT_EQ(window.policy().choices, 0);
}

TEST(Window, IsNotAskedForWithoutPrices) {
  Window window("abcde", {1, 1, 1, 1, 1});
  window.policy().knows = false;
  EXPECT_EQ(window.make(1), "-bcde");
  EXPECT_EQ(window.policy().choices, 1);
}

TEST(Window, IsNotReleasedWhileNothingMayBe) {
  Window window("abcde", {1, 1, 1, 1, 1});
  window.policy().may_release = false;
  window.make(1);
  EXPECT_EQ(window.stats().last_resorts, 1);
}

// Covers both orders: the storage is evicted first, or its last user goes first.
TEST(Policy, IsToldWhenNobodyUsesAStorageAnyMore) {
  for (const bool evict : {false, true}) {
    Window window("........", {});
    window.policy().ended = 0;
    StorageUse a = window.compute({});
    const StorageUse b = window.compute({a});
    a->offload_pinned = true;
    if (evict) {
      ASSERT_TRUE(window.residency().transfers().release(*a, Reason::kNoSpace));
    }
    EXPECT_EQ(window.policy().evicted, evict);
    EXPECT_EQ(window.policy().ended, 0);
    a = {};
    EXPECT_EQ(window.policy().ended, 1);
  }
}

}  // namespace
}  // namespace tidemark::testing
