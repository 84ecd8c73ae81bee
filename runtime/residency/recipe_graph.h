// Questions about dependencies: walks over the graph of recipes, never recursive. Only cached
// answers are changed.
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

  // Whether the storage's recipe can be run, including every recomputation that its inputs
  // need.
  bool runnable(const Storage& storage) const;
  // Invalidates cached answers: a source was written or is gone, so a recipe may have stopped
  // being runnable.
  void lost_source() { ++epoch_; }
  // Call before `storage` loses its bytes. If it cannot be recomputed, recipes that read it
  // cannot be run either.
  void losing(const Storage& storage) {
    if (!storage.managed.recipe || storage.managed.runnable_at != epoch_) lost_source();
  }

  // c_r: time to recompute it and its ancestors that are not resident; offloaded ancestors
  // count their reload cost. None if impossible. Stops counting once above `enough`.
  std::optional<Nanos> recompute_cost(const Storage& storage, Nanos enough) const;
  // c_s, one way: the expected reload time from its tier, or from the nearest tier if it has no
  // copy.
  Nanos reload_cost(const Storage& storage) const;

  // The calls to run again for `root`: each once, inputs before users.
  std::vector<IntrusivePtr<Recipe>> calls_for(const Storage& root) const;
  // Whether recomputing `from` would read `target`, now or after storages kept only for a
  // recomputation under way have been freed.
  bool reaches(const Storage& from, const Storage& target) const;
  // Whether recomputing any evicted, needed storage would read `target`.
  bool evicted_reach(const Storage& target) const;

  // Marks the storages that a call writes in place and recipes read, until end(), after the
  // call's launch. Until then, nothing that would be recomputed from their present contents may
  // be evicted.
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
  // Whether recomputing the storage would read any of written().
  bool depends_on_written(const Storage& storage) const;

 private:
  template <class IsTarget, class Known>
  bool reads(const Storage& from, const IsTarget& is_target, const Known& known) const;
  bool find_dependence(const Storage& storage) const;
  // Grows when the inputs of a recomputation, or the set being written, may have changed.
  uint64_t change() const { return changes_.counts().changes + writings_; }

  ResidencyContext& context_;
  const StateChanges& changes_;
  mutable uint64_t walk_ = 0;  // mark of the current walk
  uint64_t epoch_ = 1;         // grows when a recipe may have stopped being runnable
  uint64_t writings_ = 0;      // number so far
  std::vector<Storage*> written_;
};

}  // namespace tidemark
