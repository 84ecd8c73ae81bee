// What becomes of a storage's bytes: the one state machine, for the residency manager, where
// there are bytes, and for simulations, where there are none.
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
// A copy is valid for as long as the bytes are not written. To offload what is clean moves
// nothing; what is evicted has no copy.
//
// A change that is not in the picture is refused (std::logic_error): REQUIRES says what it
// needs.
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
  // Its bytes are somewhere, and need not be computed.
  bool available() const { return resident() || offloaded(); }

  // Who wants it.
  int32_t users = 0;    // tensors and pending operators: its bytes have to be obtainable
  int32_t put_off = 0;  // calls that are put off: as a user; it may be released
  int32_t readers = 0;  // recipes that read it
  int32_t pins = 0;     // operators being issued: it stays where it is
  int32_t claims = 0;   // recomputations under way: it is not evicted, nor freed
  // Somebody will want its bytes.
  bool needed() const { return users > 0 || put_off > 0; }
  bool held() const { return pins > 0 || claims > 0; }
  bool wanted() const { return needed() || held(); }

  // It has a block: for an operator to write, or filled from host memory or from its copy.
  // REQUIRES: not resident, not lost.
  void take_block() {
    require(!resident() && residence_ != Residence::kLost, "takes a block once");
    residence_ = Residence::kResident;
  }
  // Its block is free. `next`: kOffloaded, if it is clean; kEvicted, kDead or kEmpty (the call
  // that was to write it did not run), if it is not. REQUIRES: resident.
  void leave(Residence next) {
    require(resident() && copy_ == (next == Residence::kOffloaded),
            "leaves where it is, offloaded if it has a copy and only then");
    residence_ = next;
  }
  // REQUIRES: evicted, and nobody needs it any more.
  void die() {
    require(evicted() && !needed(), "dies when nobody needs it, without block and copy");
    residence_ = Residence::kDead;
  }
  void lose() {
    residence_ = Residence::kLost;
    copy_ = false;
  }

  // REQUIRES: resident, without a copy.
  void copy_out() {
    require(resident() && !copy_, "is copied out once");
    copy_ = true;
  }
  // The copy is not valid any more, or its space is wanted. What is on a tier alone is evicted.
  // REQUIRES: has_copy().
  void drop_copy() {
    require(copy_, "has a copy to give up");
    copy_ = false;
    if (offloaded()) residence_ = Residence::kEvicted;
  }

 private:
  static void require(bool holds, const char* what) { TIDEMARK_CHECK(holds, what); }

  Residence residence_ = Residence::kEmpty;
  bool copy_ = false;
};

}  // namespace tidemark
