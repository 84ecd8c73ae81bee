// One step as a policy has seen it: calls in order, and the storages that they used. Pure data,
// so that plans can be made and tested without a session.
//
// Storages are numbered as they come first: what is uploaded before call 0, its operands,
// inputs before outputs, then the new ones of call 1, and so on. Two steps that run the same
// calls number alike.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "runtime/core/units.h"
#include "runtime/cost/cost_model.h"

namespace tidemark {

struct StepRecord {
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

  struct Call {
    CostKey key = 0;
    Nanos begin{0};  // sum of the costs of the calls before it
    Nanos cost{0};
    Bytes workspace{0};
    std::vector<uint32_t> inputs;   // items
    std::vector<uint32_t> outputs;  // those that somebody held on to
    std::vector<uint32_t> written;  // those of the inputs that it writes in place
  };
  struct Item {
    Bytes bytes{0};          // as it occupies the arena
    bool may_evict = false;  // can be computed again: not written in place, for one
    bool may_offload = false;
    bool persistent = false;    // there before the step, and after it
    bool uploaded = false;      // during the step
    uint32_t producer = kNone;  // the call that makes it; none: it came from outside
    uint32_t begin = 0;         // the call that makes it, uploads it before, or uses it first
    uint32_t end = 0;           // it is gone once this many calls have run; at most, all
    std::vector<uint32_t> uses{};  // calls, in order, the producer among them
    bool was_there() const { return producer == kNone && !uploaded; }  // before the step
  };

  std::vector<Call> calls;
  std::vector<Item> items;
  Nanos duration{0};
};

}  // namespace tidemark
