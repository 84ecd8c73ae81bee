// Brings back evicted storages, keeps their inputs until read, and frees unused storages.
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
  // `run_again`: runs a call again whose inputs are in the arena or on a tier, making space for
  // the call.
  Rematerialiser(ResidencyContext& context, StateChanges& changes, RecipeGraph& graph,
                 Transfers& transfers, std::function<void(Recipe&, Reason)> run_again)
      : context_(context),
        changes_(changes),
        graph_(graph),
        transfers_(transfers),
        run_again_(std::move(run_again)) {}

  // Recomputes `storage` if it was evicted or freed: each call once, inputs before users, as
  // far as memory suffices for every input on the way.
  void materialise(Storage& storage, Reason reason);
  // Recomputes the call's evicted inputs, and its offloaded inputs that the policy would rather
  // recompute. Other inputs are fetched when the call is issued.
  void materialise_inputs(const Recipe& call);
  // Before a call writes graph.written() in place: brings back evicted storages that would be
  // recomputed from the old contents, and drops their recipes.
  void protect_readers();
  // At a step's end: brings back evicted storages that are needed, and drops the recipes of all
  // storages with users.
  void bring_back_survivors();
  // From now on, recomputations under way claim only the inputs of the call at hand. False if
  // they do so already, or recompute so much that the step should run out of memory instead.
  bool release_claims();

  // Until unclaim(), the storage is neither evicted nor, if unused, freed.
  void claim(Storage& storage) { ++storage.managed.claims; }
  void unclaim(Storage& storage);
  // Until release_hold(), the storage stays obtainable, as if it had a user; it may be
  // released.
  void hold(Storage& storage) { changes_.hold(storage); }
  void release_hold(Storage& storage);
  // Frees an unused storage's block and copy, unless it is the only source of something that is
  // evicted, or that the policy may evict.
  void settle_unused(Storage& storage);
  // As settle_unused(), for a schedule with placement: keeps the storage only if something
  // already evicted needs it. The storage's readers then cannot be evicted for the rest of the
  // step.
  void free_unused(Storage& storage);

  // Whether the call that is being issued may overwrite this input of it: nobody else needs its
  // bytes. If so, recipes do not count on them from now on.
  bool let_overwrite(const Storage& storage);

  // Records that a schedule ran the call again since the program's last call.
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
  std::vector<Recomputation*> recomputations_;  // under way; each serves the one before
  std::vector<IntrusivePtr<Storage>> recomputed_;
};

}  // namespace tidemark
