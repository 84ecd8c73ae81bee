// The mechanism: pin, evict, offload, reload, recompute. It runs every operator, and asks its
// ReleasePolicy what to release and when to prefetch.
//
// execute() runs an operator: claim inputs, recompute evicted inputs, pin and reload, make
// space for outputs and workspace, launch, unpin. The issuing thread waits for the device only
// where values are read, where uploads hold much host memory, and at a step's end if requested.
// Decisions depend only on the order of calls and the issue clock, never on the work completed.
//
//   Residency        runs calls; steps
//     HostCopies       values from and to host memory
//     Space            space in the arena            asks the policy what to release
//     Rematerialiser   evicted storages              runs calls again
//     Transfers        evict, offload, reload        asks the policy how
//     RecipeGraph      dependencies of storages
//     StateChanges     each change of where a storage's bytes are
//     Storages         all living storages
//
// Each part uses only the parts below it. Three ways lead up: one function to run a call again,
// one to release claims, and StorageOwner, which a storage notifies when it has no users.
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

  // Runs a call. Keeps `call` as its outputs' recipe if the call can be run again. Throws
  // OutOfMemory, DeviceError; then outputs are still kEmpty and inputs are unchanged. False if
  // a block does not lie where the placement says. REQUIRES: outputs are kEmpty.
  // `implementation`: one of the call's variants, which runs instead; null: the call itself.
  bool execute(const IntrusivePtr<Recipe>& call, const BlockPlacement& placement = {},
               Recipe* implementation = nullptr);

  // Records a call that has been issued but is to run later: its inputs are held, and it is the
  // recipe of its outputs already. Storages that
  // it writes in place count as written from now on for the program, but results computed from
  // their old bytes can still be recomputed until the call runs. execute_deferred() runs the
  // call, and may be tried again if it throws. cancel() cancels it: its outputs are lost, and
  // its in-place targets keep their bytes and version.
  void defer(const IntrusivePtr<Recipe>& call);
  bool execute_deferred(const IntrusivePtr<Recipe>& call, const BlockPlacement& placement = {},
                        Recipe* implementation = nullptr);
  void cancel(const Recipe& call);
  // Cancels a deferred upload; the storage's bytes are lost.
  void cancel_upload(Storage& storage);

  // Runs the call that made `storage` again, for `storage` and for the call's other outputs
  // that are evicted and needed or claimed. False, with nothing done, if it cannot be
  // recomputed, or if offsets are given and an input is not resident (without offsets, inputs
  // are brought back). Also false if a block does not lie where the placement says.
  bool recompute(Storage& storage, const BlockPlacement& placement);

  // See HostCopies.
  bool upload(Storage& storage, const void* from, std::shared_ptr<const void> keep_alive,
              const BlockPlacement& placement = {}) {
    return host_copies_.upload(storage, from, std::move(keep_alive), placement);
  }
  void upload(Storage& storage, const PieceSource& source) {
    host_copies_.upload(storage, source);
  }
  // Brings the storage back, then copies its values out.
  bool download(Storage& storage, Bytes offset, Bytes bytes, const PieceSink& sink);

  // Brings back all needed storages and compacts them at the arena's lower end, in address
  // order. Returns the end of the last block. Call only between operators.
  Offset pack();

  void begin_step();
  // Ends a step. Evicted storages that are needed are brought back first, and surviving
  // storages need no recipe from now on. Measured costs take effect. `synchronize`: waits for
  // the device first, so that the step's figures are complete.
  StepStats end_step(bool synchronize);
  // Cleans up after a step that threw. Evicted storages keep their recipes.
  void abort_step();

  void set_phase(Phase phase) { context_.phase = phase; }
  const StepStats& stats() const { return context_.stats; }  // of the step so far

  // Counts of retained objects, for tests and long runs.
  struct Kept {
    int64_t storages = 0;
    int64_t recipes = 0;      // storages that have one
    int64_t host_copies = 0;  // which may be under way
  };
  Kept kept() const;

  // The parts, for an executor and for tests.
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

  // Resources held while an operator is issued; released at the end, also if it throws.
  class Issue;

  enum class Run : uint8_t { kFirst, kDeferred, kAgain };
  bool run(const IntrusivePtr<Recipe>& call, Recipe& implementation, Run kind,
           const BlockPlacement& placement);
  void keep_as_recipe(const IntrusivePtr<Recipe>& call);
  bool issue(Recipe& call, Run kind, Reason reason, const BlockPlacement& placement = {});
  void fetch(Storage& storage, Reason reason);
  // decisions.cc: calls the policy after an operator and applies its decisions.
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
