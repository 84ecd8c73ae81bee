// One stream of the simulator: the end of each piece of work, and when the stream is free.
//
// Ends are kept for unfinished work; work older than the ring is done.
//
// Threads: the issuing thread.
#pragma once

#include <array>

#include "runtime/core/units.h"
#include "runtime/device/stream.h"

namespace tidemark {

class Timeline {
 public:
  Ticket issued() const { return issued_; }
  Nanos free_at() const { return free_at_; }

  // The end of `ticket`, or 0 if it is past.
  Nanos end_of(Ticket ticket) const {
    return ticket < oldest_ ? Nanos(0) : ends_[slot(ticket)];
  }

  void forget_before(Nanos now) {
    while (oldest_ <= issued_ && ends_[slot(oldest_)] <= now) ++oldest_;
  }
  // True: kMaxInFlight pieces of work are unfinished; the first of them ends at first_end().
  bool full() const { return issued_ + 1 - oldest_ >= kMaxInFlight; }
  Nanos first_end() const { return ends_[slot(oldest_)]; }

  // REQUIRES: !full(), end >= free_at().
  Ticket push(Nanos end) {
    free_at_ = end;
    ends_[slot(++issued_)] = end;
    return issued_;
  }

 private:
  static size_t slot(Ticket ticket) { return static_cast<size_t>(ticket % kMaxInFlight); }

  Ticket issued_ = 0;
  Ticket oldest_ = 1;  // the first that may be unfinished
  Nanos free_at_{0};
  std::array<Nanos, kMaxInFlight> ends_;
};

}  // namespace tidemark
