// An arena whose k-th allocation fails in one of several ways.
//
// Threads: the issuing thread.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "runtime/core/errors.h"
#include "runtime/memory/arena.h"

namespace tidemark::testing {

enum class AllocationFault : uint8_t {
  kNoneOnce,   // no space at the k-th call
  kNoneSince,  // no space from the k-th call on, until heal()
  kThrowOnce,  // OutOfMemory at the k-th call
};

class FaultyArena final : public Arena {
 public:
  using Arena::Arena;

  // Makes the k-th call from now, from 1, fail.
  void fail(int64_t k, AllocationFault fault) {
    at_ = calls_ + k;
    fault_ = fault;
  }
  void heal() { at_ = 0; }
  // The next allocation at a given place finds it taken.
  void refuse_place() { refuses_place_ = true; }
  int64_t calls() const { return calls_; }
  int64_t faults() const { return faults_; }

  std::optional<Allocation> allocate(Bytes size, Category category) override {
    ++calls_;
    const bool fails =
        at_ != 0 && (fault_ == AllocationFault::kNoneSince ? calls_ >= at_ : calls_ == at_);
    if (!fails) return Arena::allocate(size, category);
    ++faults_;
    if (fault_ != AllocationFault::kThrowOnce) return std::nullopt;
    throw OutOfMemory("[arena] injected fault", size, offsets().capacity());
  }

  std::optional<Allocation> allocate_at(Offset offset, Bytes size, Category category) override {
    if (std::exchange(refuses_place_, false)) return std::nullopt;
    return Arena::allocate_at(offset, size, category);
  }

 private:
  bool refuses_place_ = false;
  int64_t calls_ = 0;
  int64_t faults_ = 0;
  int64_t at_ = 0;
  AllocationFault fault_ = AllocationFault::kNoneOnce;
};

}  // namespace tidemark::testing
