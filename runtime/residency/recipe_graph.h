// Questions about what would be computed from what: walks over the graph of recipes, never
// recursive. Nothing is changed but what it remembers of its answers.
//
// Threads: the session's issuing thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/core/intrusive_ptr.h"
#include "runtime/residency/context.h"
#include "runtime/residency/state_changes.h"
#include "runtime/tensor/recipe.h"

namespace tidemark {

class RecipeGraph {
 public:
  RecipeGraph(ResidencyContext& context, const StateChanges& changes)
      : context_(context), changes_(changes) {}

  // Can the storage's recipe be run, with everything that has to be recomputed for it?
  bool runnable(const Storage& storage) const;
  // A recipe may have stopped being runnable: a source was written, or is gone.
  void lost_source() { ++epoch_; }
  // `storage` is about to be gone. If it cannot be computed again, neither can what reads it.
  void losing(const Storage& storage) {
    if (!storage.managed.recipe || storage.managed.runnable_at != epoch_) lost_source();
  }

  // c_r: time to recompute it with its ancestors that are not resident, offloaded ones at their
  // reload cost. None if that is impossible. Stops counting once above `enough`.
  std::optional<Nanos> recompute_cost(const Storage& storage, Nanos enough) const;
  // c_s for one direction, as the tier that it is on (or would go to) is expected to take.
  Nanos reload_cost(const Storage& storage) const;

  // The calls to run again for `root`, each once, inputs before users.
  std::vector<IntrusivePtr<Recipe>> calls_for(const Storage& root) const;
  // Would recomputing `from` read `target`, now or once what is here only for a recomputation
  // under way (nobody needs it) is gone again?
  bool reaches(const Storage& from, const Storage& target) const;
  // Would bringing back something that was evicted, and is needed, read it?
  bool evicted_reach(const Storage& target) const;

  // What a call that is being issued writes in place, and recipes read, from here to the end:
  // nothing that would be recomputed from its present contents may be evicted until the call is
  // launched.
  class Writing {
   public:
    Writing(RecipeGraph& graph, const Recipe& call);
    ~Writing() { end(); }
    Writing(const Writing&) = delete;
    Writing& operator=(const Writing&) = delete;
    void end();

   private:
    RecipeGraph& graph_;
  };
  const std::vector<Storage*>& written() const { return written_; }
  // Would recomputing it read one of them?
  bool depends_on_written(const Storage& storage) const;

 private:
  template <class IsTarget, class Known>
  bool reads(const Storage& from, const IsTarget& is_target, const Known& known) const;
  bool find_dependence(const Storage& storage) const;
  // Grows when what recomputing something reads, or what is written, may have changed.
  uint64_t change() const { return changes_.counts().changes + writings_; }

  ResidencyContext& context_;
  const StateChanges& changes_;
  mutable uint64_t walk_ = 0;  // mark of the current walk
  uint64_t epoch_ = 1;         // grows when a recipe may have stopped being runnable
  uint64_t writings_ = 0;      // so far
  std::vector<Storage*> written_;
};

}  // namespace tidemark
