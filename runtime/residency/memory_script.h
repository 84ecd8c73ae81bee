// What happens to memory during a step, told as it happens (MemoryObserver), so that a later
// step like it can do the same without asking anybody (MemoryScript).
//
// Threads: the session's issuing thread.
#pragma once

#include <optional>

#include "runtime/core/units.h"
#include "runtime/residency/policy.h"
#include "runtime/tensor/storage.h"

namespace tidemark {

// Told each thing as it is done, in order. That blocks slide is not told.
class MemoryObserver {
 public:
  virtual ~MemoryObserver() = default;
  // It has a block: for an operator to write, or to be reloaded into. `ahead`: prefetched.
  virtual void on_block(const Storage& storage, bool ahead) = 0;
  // Work that reads or writes its block has been issued.
  virtual void on_used(const Storage& storage) = 0;
  // Its block is free, for whatever reason; after the following two.
  virtual void on_left(const Storage& storage) = 0;
  // Released, by a decision: kOffload too where a copy was on a tier already.
  virtual void on_released(const Storage& storage, Action action) = 0;
  virtual void on_copied_out(const Storage& storage) = 0;
  // What is on a tier is to be recomputed instead.
  virtual void on_copy_given_up(const Storage& storage) = 0;
  // The policy's moment after a call of the program is over.
  virtual void on_call_done() = 0;
};

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
