// Bringing back what was evicted, keeping what that takes, and letting go of the rest.
//
// Threads: the session's issuing thread.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "runtime/core/intrusive_ptr.h"
#include "runtime/residency/context.h"
#include "runtime/residency/recipe_graph.h"
#include "runtime/residency/state_changes.h"
#include "runtime/residency/transfers.h"
#include "runtime/tensor/recipe.h"

namespace tidemark {

class Rematerialiser {
 public:
  // `run_again`: runs a call again whose inputs are in the arena or on a tier, and makes room
  // for it.
  Rematerialiser(ResidencyContext& context, StateChanges& changes, RecipeGraph& graph,
                 Transfers& transfers, std::function<void(Recipe&, Reason)> run_again)
      : context_(context),
        changes_(changes),
        graph_(graph),
        transfers_(transfers),
        run_again_(std::move(run_again)) {}

  // Computes it again, if it was evicted or freed: each call once, inputs before users, as far
  // as memory suffices for all that is read on the way.
  void materialise(Storage& storage, Reason reason);
  // The inputs that were evicted, and those offloaded that the policy would rather recompute.
  // The rest is fetched when the call is issued.
  void materialise_inputs(const Recipe& call);
  // A call is about to write graph.written() in place: what was evicted and would be recomputed
  // from their present contents comes back first, and needs no recipe any more.
  void protect_readers();
  // A step's end: what was evicted and is needed is brought back, and what has users needs no
  // recipe from now on.
  void bring_back_survivors();
  // From now on recomputations under way claim the inputs of the call at hand alone. False:
  // they do already, or they recompute so much that the step is to run out of memory instead.
  bool release_claims();

  // Until unclaim() the storage is not evicted, nor freed although nobody needs it.
  void claim(Storage& storage) { ++storage.managed.claims; }
  void unclaim(Storage& storage);
  // Until let_go() its bytes can be had, as if it had a user; it may be released.
  void hold(Storage& storage) { changes_.hold(storage); }
  void let_go(Storage& storage);
  // If nobody wants it: its block and its copy go, unless it is the only source of something
  // that is evicted, or that the policy may evict.
  void settle_unused(Storage& storage);
  // Or unless it is the only source of what is evicted now: by a schedule with places, which
  // counts on it. Its readers can then not be evicted in this step, whatever the step does
  // next.
  void free_unused(Storage& storage);

  // A schedule had the call run again, since the program's last call.
  void note_recomputed(const Recipe& call);
  void forget_recomputed() { recomputed_.clear(); }

 private:
  class Recomputation;

  bool recompute_at_once(Recomputation& recomputation, Storage& root, Reason reason);
  void protect_readers_of(Storage& storage);
  bool is_only_source(const Storage& storage) const;

  ResidencyContext& context_;
  StateChanges& changes_;
  RecipeGraph& graph_;
  Transfers& transfers_;
  const std::function<void(Recipe&, Reason)> run_again_;
  std::vector<Recomputation*> recomputations_;  // under way, each for the one before it
  std::vector<IntrusivePtr<Storage>> recomputed_;
};

}  // namespace tidemark
