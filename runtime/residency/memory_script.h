// Who decides a whole step's memory ahead, so that nobody has to be asked.
//
// Threads: the session's issuing thread.
#pragma once

#include <optional>

#include "runtime/core/units.h"
#include "runtime/residency/policy.h"
#include "runtime/tensor/storage.h"

namespace tidemark {

// Decides in the policy's place, and where each block lies. It does by itself, with
// Residency's means, what has to come first.
class Recipe;

class MemoryScript {
 public:
  virtual ~MemoryScript() = default;
  // A block for that storage is wanted.
  struct Place {
    bool foreseen = false;
    std::optional<Offset> at{};  // none: anywhere; room is made if need be, by sliding first
  };
  virtual Place place(const Storage& storage) = 0;
  // As ReleasePolicy's.
  virtual bool recompute_offloaded(const Storage& storage) = 0;
  // The policy's moment; false: what was to be done could not be.
  virtual bool after_operator(const Recipe& call) = 0;
  // It is not followed any more, and the policy decides from here on: the place was taken, or
  // something that was not foreseen.
  virtual void abandoned() = 0;
};

}  // namespace tidemark
