// The mechanism: pin, evict, offload, reload, recompute. It runs every operator; what to
// release and when to prefetch it asks its ReleasePolicy.
//
// An operator's life (execute): claim inputs, recompute those that were evicted, pin and
// reload, make room for outputs and workspace, launch, unpin. The issuing thread waits for the
// device only where values are read, where uploads hold much host memory, and at a step's end
// if asked to. Every decision comes from the order of calls and the issue clock, never from
// what has completed.
//
//   Residency        runs calls; steps
//     HostCopies       values from and to host memory
//     Space            room in the arena             asks the policy what to release
//     Rematerialiser   what was evicted              runs calls again
//     Transfers        evict, offload, reload        asks the policy how
//     RecipeGraph      what is computed from what
//     StateChanges     each change of where a storage's bytes are
//     Storages         all that are alive
//
// Each uses those below it alone. Three ways lead up: functions to run a call again and to have
// claims given up, and StorageOwner, by which a storage says that nobody uses it any more.
//
// Threads: the session's issuing thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/residency/context.h"
#include "runtime/residency/host_copies.h"
#include "runtime/residency/measurements.h"
#include "runtime/residency/placement.h"
#include "runtime/residency/recipe_graph.h"
#include "runtime/residency/rematerialiser.h"
#include "runtime/residency/space.h"
#include "runtime/residency/state_changes.h"
#include "runtime/residency/transfers.h"
#include "runtime/residency/view.h"
#include "runtime/tensor/recipe.h"
#include "runtime/tensor/storage.h"

namespace tidemark {

class Residency final : public StorageOwner {
 public:
  Residency(Device& device, Arena& arena, std::vector<Tier*> tiers, CostModel& costs,
            EventLog& log, ReleasePolicy& policy, const ResidencyOptions& options);

  // Runs a call. Outputs must be kEmpty. Keeps `call` as the outputs' recipe if it can be run
  // again. Throws OutOfMemory, DeviceError; then outputs are still kEmpty and inputs are as
  // they were. False if a block does not lie where the placement says.
  bool execute(const IntrusivePtr<Recipe>& call, const BlockPlacement& placement = {});

  // A call that has been issued but is to be run later: its inputs are held, and for the
  // program what it writes in place counts as written from now on; what others have computed
  // from the bytes that are there until then can still be computed again. Then
  // execute_deferred() runs it; if that throws it may be tried again. Or give_up() says that it
  // never will be: its outputs are lost, what it would have written in place stays as it is,
  // version included.
  void defer(const Recipe& call);
  bool execute_deferred(const IntrusivePtr<Recipe>& call, const BlockPlacement& placement = {});
  void give_up(const Recipe& call);
  // The same of an upload that never will be.
  void cancel_upload(Storage& storage);

  // Runs the call that made it again, for it and for whatever else the call made that is away
  // and is needed or claimed. False, and nothing has happened, if it has no recipe, or has
  // places and an input is not resident (without places it is brought back); false too if a
  // block does not lie where the placement says.
  bool recompute(Storage& storage, const BlockPlacement& placement);

  // See HostCopies.
  bool upload(Storage& storage, const void* from, std::shared_ptr<const void> keep_alive,
              const BlockPlacement& placement = {}) {
    return host_copies_.upload(storage, from, std::move(keep_alive), placement);
  }
  void upload(Storage& storage, const PieceSource& source) {
    host_copies_.upload(storage, source);
  }
  // Brings it back first.
  bool download(Storage& storage, Bytes offset, Bytes bytes, const PieceSink& sink);

  // Brings everything back and slides it together at the arena's lower end, in the order in
  // which it lies. Where that ends. Only between operators.
  Offset pack();

  void begin_step();
  // Everything that is alive keeps its bytes without need of a recipe from now on (evicted
  // storages are brought back first). Measured costs are taken over.
  // `synchronize`: waits for the device first, so that the figures are whole.
  StepStats end_step(bool synchronize);
  // A step that threw: clears what was under way. What is evicted keeps its recipe.
  void abort_step();

  void set_phase(Phase phase) { context_.phase = phase; }
  const StepStats& stats() const { return context_.stats; }  // of the step so far

  // What it keeps, counted: for tests and long runs.
  struct Kept {
    int64_t storages = 0;
    int64_t recipes = 0;      // storages that have one
    int64_t host_copies = 0;  // that may be under way
  };
  Kept kept() const;

  // Its parts, for whoever decides (an executor) and for tests.
  const MemoryView& view() const { return view_; }
  StorageEvents& storage_events() { return context_.events; }
  Effort& effort() { return context_.effort; }
  const Arena& arena() const { return context_.arena; }
  Storages& storages() { return context_.storages; }
  const Storages& storages() const { return context_.storages; }
  const StateChanges& changes() const { return changes_; }
  Transfers& transfers() { return transfers_; }
  Rematerialiser& rematerialiser() { return rematerialiser_; }
  Space& space() { return space_; }
  Measurements& measurements() { return measurements_; }

 private:
  // StorageOwner
  void on_unused(Storage& storage) override;
  void on_unreferenced(Storage& storage) override { changes_.destroy(storage); }

  // What an operator being issued holds on to; lets go of it when it ends, however it ends.
  class Issue;

  enum class Run : uint8_t { kFirst, kDeferred, kAgain };
  bool run(const IntrusivePtr<Recipe>& call, Run kind, const BlockPlacement& placement);
  bool issue(Recipe& call, Run kind, Reason reason, const BlockPlacement& placement = {});
  void fetch(Storage& storage, Reason reason);
  // decisions.cc: what the policy wants done at its moment.
  void note_issued(const Recipe& call, const BlockPlacement& placement);
  void ask_policy();
  bool apply(const Decision& decision);

  ResidencyContext context_;
  Measurements measurements_;
  StateChanges changes_;
  RecipeGraph graph_;
  Transfers transfers_;
  Rematerialiser rematerialiser_;
  Space space_;
  HostCopies host_copies_;
  View view_;
  Nanos step_began_{0};
  Nanos modelled_began_{0};
  Nanos stalled_before_{0};
};

}  // namespace tidemark
