// The state machine of a storage's bytes, shared by the residency manager, which has bytes, and
// by simulations, which have none.
//
//              take_block
//   kEmpty <---------------> kResident   a block; with a valid copy on a tier it is clean
//            leave: its       |  |  |
//            call did not run |  |  | leave       each of the three comes back by take_block
//                    +--------+  |  +--------+
//                    v           v           v
//              kOffloaded --> kEvicted --> kDead
//              a copy alone   neither      neither, and nobody needs it; its call may still run
//                                          again for another's sake
//
//   kOffloaded -> kEvicted   drop_copy
//   kEvicted   -> kDead      die
//   any        -> kLost      lose: its bytes cannot be had again
//
// A copy is valid until the bytes are written. Offloading a clean storage moves nothing; an
// evicted storage has no copy.
//
// A change that is not in the diagram throws std::logic_error; REQUIRES states its
// preconditions.
//
// Threads: plain data.
#pragma once

#include <cstdint>

#include "runtime/core/errors.h"

namespace tidemark {

enum class Residence : uint8_t { kEmpty, kResident, kEvicted, kOffloaded, kDead, kLost };

class StorageState {
 public:
  Residence residence() const { return residence_; }
  bool resident() const { return residence_ == Residence::kResident; }
  bool evicted() const { return residence_ == Residence::kEvicted; }
  bool offloaded() const { return residence_ == Residence::kOffloaded; }
  bool has_copy() const { return copy_; }
  bool clean() const { return resident() && copy_; }
  // Whether its bytes exist somewhere and need not be recomputed.
  bool available() const { return resident() || offloaded(); }

  // Counts of the parties that need it.
  int32_t users = 0;           // tensors and pending operators: its bytes must stay obtainable
  int32_t deferred_users = 0;  // deferred calls: as `users`, but it may be released
  int32_t readers = 0;         // recipes that read it
  int32_t pins = 0;            // operators being issued: it must not move
  int32_t claims = 0;          // recomputations under way: neither evicted nor freed
  // Whether any user or deferred call needs its bytes.
  bool needed() const { return users > 0 || deferred_users > 0; }
  bool held() const { return pins > 0 || claims > 0; }
  bool wanted() const { return needed() || held(); }

  // Takes a block: for an operator to write, or filled from host memory or from the copy.
  // REQUIRES: not resident, not lost.
  void take_block() {
    require(!resident() && residence_ != Residence::kLost, "takes a block only if it has none");
    residence_ = Residence::kResident;
  }
  // Leaves its block. `next`: kOffloaded if clean; else kEvicted, kDead, or kEmpty (the call
  // that was to write it did not run). REQUIRES: resident.
  void leave(Residence next) {
    require(resident() && copy_ == (next == Residence::kOffloaded),
            "leaves a block that it has; it is offloaded exactly if it has a copy");
    residence_ = next;
  }
  // REQUIRES: evicted and no longer needed.
  void die() {
    require(evicted() && !needed(), "dies only if evicted and no longer needed");
    residence_ = Residence::kDead;
  }
  void lose() {
    residence_ = Residence::kLost;
    copy_ = false;
  }

  // REQUIRES: resident, without a copy.
  void copy_out() {
    require(resident() && !copy_, "is copied out only if resident and without a copy");
    copy_ = true;
  }
  // Invalidates or drops the copy. A storage without a block is then evicted. REQUIRES:
  // has_copy().
  void drop_copy() {
    require(copy_, "has a copy to drop");
    copy_ = false;
    if (offloaded()) residence_ = Residence::kEvicted;
  }

 private:
  static void require(bool holds, const char* what) { TIDEMARK_CHECK(holds, what); }

  Residence residence_ = Residence::kEmpty;
  bool copy_ = false;
};

}  // namespace tidemark
