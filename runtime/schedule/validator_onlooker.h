// Tracks each storage's state while the code is checked, to decide whether every wanted storage
// can still be had back. Private to the validator.
//
// Threads: belongs to one.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/schedule/validator_notes.h"

namespace tidemark::schedule_validator {

class Onlooker {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Known {
    uint32_t block = kNone;
    uint32_t producer = kNone;  // its operator, if made in this step
    uint32_t version = 0;       // times written so far in this code
    // By operators that have not run yet: as they will run, and what they would read by
    // themselves where they run as variants.
    uint32_t uses_left = 0;
    uint32_t own_uses_left = 0;
    bool made = false;    // has been given its value
    bool copied = false;  // a valid copy exists
    bool let_go = false;  // the operator that drops it has run
    bool lost = false;    // already reported
  };

  explicit Onlooker(const Notes& notes);

  Known& operator[](uint32_t storage) { return known_[storage]; }
  const Known& operator[](uint32_t storage) const { return known_[storage]; }
  uint32_t size() const { return static_cast<uint32_t>(known_.size()); }

  bool resident(uint32_t storage) const {
    return known_[storage].block != kNone || notes_.is_apart(storage);
  }
  // Whether the program, or an operator still to run, needs the storage.
  bool wanted(uint32_t storage) const {
    const Known& it = known_[storage];
    return it.made && (!it.let_go || it.uses_left > 0 || it.own_uses_left > 0);
  }
  static bool writes(const StepTrace::Op& op);
  // Whether the storage may be evicted: a call of this step made it and may run again. The
  // call's inputs are checked elsewhere.
  bool may_be_made_again(uint32_t storage) const;
  // Wanted storages that are neither resident, copied, nor computable from such storages. Each
  // is returned once, by the first call that finds it.
  std::vector<uint32_t> newly_lost();

  std::vector<bool> ran;  // by operator

 private:
  enum class Has : uint8_t { kUnknown, kYes, kNo };
  bool can_be_had(uint32_t storage);
  Has decide(uint32_t storage);

  const Notes& notes_;
  std::vector<Known> known_;
  std::vector<Has> has_;  // in this call of newly_lost()
  std::vector<uint32_t> pending_;
};

}  // namespace tidemark::schedule_validator
