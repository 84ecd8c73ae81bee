// Private to residency/: what a recomputation under way will read.
#pragma once

#include <deque>
#include <utility>
#include <vector>

#include "runtime/residency/residency.h"

namespace tidemark {

// While claimed, a storage is neither evicted nor, if it has no users, freed. The austere
// schedule may still offload it.
class Residency::Claims {
 public:
  explicit Claims(Residency& residency) : residency_(&residency) {}
  Claims(Claims&& other) noexcept
      : residency_(other.residency_), storages_(std::exchange(other.storages_, {})) {}
  Claims& operator=(Claims&&) = delete;
  ~Claims() { drop(); }

  void add(Storage& storage) {
    ++storage.wanted_;
    storages_.emplace_back(&storage);
  }
  void drop() {
    for (const auto& storage : std::exchange(storages_, {})) {
      if (--storage->wanted_ == 0 && storage->pins_ == 0 && !needed(*storage)) {
        residency_->settle_unused(*storage);
      }
    }
  }

 private:
  Residency* residency_;
  std::vector<IntrusivePtr<Storage>> storages_;
};

// A storage that is being brought back, and the calls to run again for it. Those under way are
// a stack, the residency's.
class Residency::Recomputation {
 public:
  Recomputation(Residency& residency, Storage& root) : residency_(residency), root_(residency) {
    root_.add(root);
    residency.recomputations_.push_back(this);
  }
  Recomputation(const Recomputation&) = delete;
  Recomputation& operator=(const Recomputation&) = delete;
  ~Recomputation() { residency_.recomputations_.pop_back(); }

  // Claims what the call reads, until it has run. They run in this order.
  void will_run(const Recipe& call) {
    Claims& inputs = to_be_read_.emplace_back(residency_);
    for (const Recipe::Input& input : call.inputs) inputs.add(*input.storage);
  }
  void has_run() { to_be_read_.pop_front(); }
  // All but what the call at hand reads. False: there was nothing more.
  bool give_up() {
    if (to_be_read_.size() <= 1) return false;
    while (to_be_read_.size() > 1) to_be_read_.pop_back();
    return gave_up_ = true;
  }
  bool gave_up() const { return gave_up_; }

 private:
  Residency& residency_;
  Claims root_;
  std::deque<Claims> to_be_read_;  // by call
  bool gave_up_ = false;
};

}  // namespace tidemark
