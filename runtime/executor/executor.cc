#include "runtime/executor/executor.h"

#include <algorithm>
#include <utility>

namespace tidemark {
namespace {

// A view at another offset may have the same signature, but may not overwrite the same inputs.
bool may_overwrite_the_same(const StepTrace::Op& op, const Recipe& call) {
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const bool may = std::find(op.may_overwrite.begin(), op.may_overwrite.end(),
                               op.inputs[i].storage) != op.may_overwrite.end();
    if (may != ((call.may_overwrite >> i & 1) != 0)) return false;
  }
  return true;
}

bool same_call(const StepTrace::Op& op, const Recipe& call, const CostModel& costs) {
  return op.kind == StepTrace::Kind::kCall && op.signature == costs.signature(call.cost_key) &&
         op.inputs.size() == call.inputs.size() && op.outputs.size() == call.outputs.size() &&
         op.workspace == align_up(call.workspace) && op.name == call.name() &&
         may_overwrite_the_same(op, call);
}

// How a call that has the name of the planned one differs from it.
std::string difference(const StepTrace& trace, const StepTrace::Op& op, const Recipe& call,
                       const CostModel& costs) {
  const auto other = [](const char* what, const std::string& is, const std::string& planned) {
    return std::string(what) + " " + is + " instead of " + planned;
  };
  const auto other_count = [&](const char* what, size_t is, size_t planned) {
    return other(what, std::to_string(is), std::to_string(planned));
  };
  if (op.inputs.size() != call.inputs.size())
    return other_count("its number of inputs is", call.inputs.size(), op.inputs.size());
  if (op.outputs.size() != call.outputs.size())
    return other_count("its number of outputs is", call.outputs.size(), op.outputs.size());
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const Bytes is = call.inputs[i].storage->size(),
                planned = trace.storages[op.inputs[i].storage].size;
    if (is != planned) return other("an input takes", format_bytes(is), format_bytes(planned));
  }
  for (size_t i = 0; i < op.outputs.size(); ++i) {
    const Bytes is = call.outputs[i].storage->size(),
                planned = trace.storages[op.outputs[i]].size;
    if (is != planned) return other("an output takes", format_bytes(is), format_bytes(planned));
  }
  const Bytes workspace = align_up(call.workspace);
  if (workspace != op.workspace)
    return other("its workspace takes", format_bytes(workspace), format_bytes(op.workspace));
  if (op.signature != costs.signature(call.cost_key)) return "its shapes or attributes differ";
  if (!may_overwrite_the_same(op, call)) return "it may run in place on other inputs";
  return "it uses other tensors, or one is still held that had been dropped before it";
}

}  // namespace

bool Executor::applies(const BoundSchedule& bound, const Residency& residency) {
  const Schedule& schedule = bound.schedule;
  const auto in_use = residency.storages().in_use();
  const auto numbers = bound.initial.numbers(in_use);
  if (!numbers) return false;
  if (schedule.residents_apart) {
    return residency.storages().bytes_in_use() + schedule.peak <=
           residency.arena().offsets().capacity();
  }
  std::vector<Bytes> expected = schedule.foreign, foreign;
  for (size_t i = 0; i < in_use.size(); ++i) {
    if ((*numbers)[i] == InitialStorages::kForeign) foreign.push_back(in_use[i]->size());
  }
  std::sort(expected.begin(), expected.end());
  std::sort(foreign.begin(), foreign.end());
  return foreign == expected;
}

bool Executor::begins_with(const StepTrace& trace, const Recipe& call, const CostModel& costs) {
  const StepTrace::Op& op = trace.ops.front();
  if (!same_call(op, call, costs)) return false;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    if (trace.storages[op.inputs[i].storage].size != call.inputs[i].storage->size())
      return false;
  }
  return true;
}

bool Executor::begins_with(const StepTrace& trace, StepTrace::Kind kind,
                           const Storage& storage) {
  const StepTrace::Op& op = trace.ops.front();
  if (op.kind != kind) return false;
  const bool reads = kind == StepTrace::Kind::kRead;
  const uint32_t of_trace = reads ? op.inputs.front().storage : op.outputs.front();
  return trace.storages[of_trace].size == storage.size();
}

Executor::Executor(std::shared_ptr<const BoundSchedule> bound, Residency& residency)
    : bound_(std::move(bound)),
      trace_(bound_->trace),
      schedule_(bound_->schedule),
      residency_(residency),
      versions_(trace_.storages.size(), 0),
      released_(trace_.storages.size(), false),
      claimed_(trace_.storages.size()),
      variants_(trace_.ops.size(), 0),
      last_used_again_(trace_.storages.size(), 0),
      kept_(trace_.storages.size()),
      read_by_variant_(trace_.storages.size(), false),
      remembered_(trace_.storages.size()),
      deferred_(trace_.ops.size()) {
  for (uint32_t i = 0; i < schedule_.code.size(); ++i) {
    const Instruction& it = schedule_.code[i];
    if (!it.again && it.variant == 0) continue;
    variants_[it.subject] = std::max(variants_[it.subject], it.variant);
    const StepTrace::Op& op = trace_.ops[it.subject];
    for (const StepTrace::Input& input : op.implementation(it.variant).inputs) {
      last_used_again_[input.storage] = i + 1;
      if (it.variant != 0) read_by_variant_[input.storage] = true;
    }
  }
  numbering_.begin_step();
  residency_.measurements().set_planned(true);
  if (schedule_.residents_apart) {
    base_ = residency_.pack();
    // Storages that only recipes need may take space beside those in use.
    if (schedule_.peak > Bytes(0) && !residency_.space().open_plan(base_, schedule_.peak))
      leave_for_memory("the storages in use leave no space for the plan");
  } else if (!begin()) {
    leave_for_memory("storages in use cannot be moved to their planned offsets");
  }
}

Executor::~Executor() { stop_following(); }

// Brings the storages in use to the places with which the schedule begins. Foreign storages are
// matched by size.
bool Executor::begin() {
  std::vector<std::optional<Offset>> at(trace_.storages.size());
  std::vector<Schedule::Block> foreign;
  for (uint32_t b = 0; b < schedule_.initial_blocks; ++b) {
    const Schedule::Block& block = schedule_.blocks[b];
    if (block.storage < at.size()) {
      at[block.storage] = block.at;
    } else {
      foreign.push_back(block);
    }
  }
  std::vector<Bytes> away = schedule_.foreign;  // sizes of foreign storages without a block
  for (const Schedule::Block& block : foreign) {
    away.erase(std::find(away.begin(), away.end(), block.size));
  }
  const auto in_use = residency_.storages().in_use();
  const auto numbers = bound_->initial.numbers(in_use);
  if (!numbers) return false;
  std::vector<Space::Target> targets;
  for (size_t i = 0; i < in_use.size(); ++i) {
    const IntrusivePtr<Storage>& storage = in_use[i];
    if (const uint32_t number = (*numbers)[i]; number != InitialStorages::kForeign) {
      numbering_.assign(*storage, number);
      targets.push_back({storage.get(), at[number]});
      continue;
    }
    const auto place = std::find_if(foreign.begin(), foreign.end(), [&](const auto& block) {
      return block.size == storage->size();
    });
    if (place != foreign.end()) {
      numbering_.assign(*storage, place->storage);
      targets.push_back({storage.get(), place->at});
      foreign.erase(place);
      continue;
    }
    const auto size = std::find(away.begin(), away.end(), storage->size());
    if (size == away.end()) return false;
    away.erase(size);
    targets.push_back({storage.get(), std::nullopt});
  }
  if (schedule_.placed) return residency_.space().relocate(targets);
  return std::all_of(targets.begin(), targets.end(), [&](const Space::Target& target) {
    Storage& storage = *target.storage;
    if (storage.resident() == target.at.has_value()) return true;
    return target.at
               ? residency_.space().copy_in(storage, std::nullopt)
               : residency_.transfers().release_by(storage, Action::kOffload, Reason::kPlan);
  });
}

// --- matching ---

// Whether `storage` has that number. A storage without a number takes it if it is free.
bool Executor::bind(Storage& storage, uint32_t number) {
  if (numbering_.has(storage)) return numbering_.of(storage) == number;
  if (numbering_.find(number)) return false;
  numbering_.assign(storage, number);
  return true;
}

const StepTrace::Op* Executor::expected(StepTrace::Kind kind) {
  check_range();
  if (!followed() || issued_ == trace_.ops.size()) return nullptr;
  const StepTrace::Op& op = trace_.ops[issued_];
  return op.kind == kind && released_as_traced() ? &op : nullptr;
}

// Leaves the schedule if the range that it places blocks in has been closed.
void Executor::check_range() {
  const bool closed = schedule_.residents_apart && schedule_.peak > Bytes(0) &&
                      !residency_.space().plan_is_open();
  if (closed) leave_for_memory("storages outside the plan did not fit beside it");
}

// Whether the program has let go of everything that it had let go of by now in the trace. The
// schedule may use those places from here on.
bool Executor::released_as_traced() const {
  if (issued_ == 0) return true;
  const std::vector<uint32_t>& released = trace_.ops[issued_ - 1].released;
  return std::all_of(released.begin(), released.end(),
                     [&](uint32_t storage) { return released_[storage]; });
}

void Executor::unused(const Storage& storage) {
  if (!numbering_.has(storage)) return;
  const uint32_t number = numbering_.of(storage);
  if (number >= released_.size()) return;
  released_[number] = true;
  keep_for_later_runs(number);
}

// The program has dropped the storage, which would now be freed, or after the deferred calls
// that read it. The schedule may compute something from it again before it frees it.
void Executor::keep_for_later_runs(uint32_t number) {
  Storage* storage = find(number);
  if (!followed() || !storage || last_used_again_[number] <= next_) return;
  if (read_by_variant_[number]) remembered_[number] = IntrusivePtr<Storage>(storage);
  // What is away comes back by a run again of its own. What is empty, a deferred call makes.
  const bool is_to_stay =
      storage->managed.available() || storage->residence() == Residence::kEmpty;
  if (!is_to_stay || claimed_[number] || kept_[number]) return;
  residency_.rematerialiser().hold(*storage);
  kept_[number] = IntrusivePtr<Storage>(storage);
}

// Assigns numbers to the storages as it compares them.
bool Executor::matches(const Recipe& call) {
  const StepTrace::Op* op = expected(StepTrace::Kind::kCall);
  if (!op || !same_call(*op, call, residency_.view().costs())) return false;
  for (size_t i = 0; i < op->inputs.size(); ++i) {
    const Recipe::Input& input = call.inputs[i];
    const StepTrace::Input& traced = op->inputs[i];
    if (!bind(*input.storage, traced.storage) || traced.written != input.written ||
        versions_[traced.storage] != traced.version ||
        trace_.storages[traced.storage].size != input.storage->size()) {
      return false;
    }
  }
  for (size_t i = 0; i < op->outputs.size(); ++i) {
    Storage& output = *call.outputs[i].storage;
    if (trace_.storages[op->outputs[i]].size != output.size() ||
        !bind(output, op->outputs[i])) {
      return false;
    }
  }
  return true;
}

std::string Executor::unexpected(const Recipe& call) const {
  if (!followed()) return "";
  const std::string name = std::string("[") + call.label() + "]";
  const StepTrace::Op* op = issued_ < trace_.ops.size() ? &trace_.ops[issued_] : nullptr;
  if (!op || op->kind != StepTrace::Kind::kCall || op->label() != call.label())
    return name + " was not expected" + but_expected();
  return name + " is not the planned call of this name: " +
         difference(trace_, *op, call, residency_.view().costs());
}

// What the schedule runs instead of the call; null: the call itself. Leaves the schedule if the
// call does not have that variant now, as it depends on the recipes that are kept.
IntrusivePtr<Recipe> Executor::variant_of(const Recipe& call, uint32_t op) {
  if (variants_[op] == 0) return {};
  const StepTrace::Variant& planned = trace_.ops[op].variants[variants_[op] - 1];
  const CostModel& costs = residency_.view().costs();
  const auto same_input = [this](const Recipe::Input& input, const StepTrace::Input& traced) {
    return numbering_.has(*input.storage) && numbering_.of(*input.storage) == traced.storage &&
           input.version == input.storage->version() &&
           versions_[traced.storage] == traced.version;
  };
  for (IntrusivePtr<Recipe>& other : call.variants()) {
    if (planned.name == other->name() &&
        planned.signature == costs.signature(other->cost_key) &&
        planned.workspace == align_up(other->workspace) &&
        std::equal(other->inputs.begin(), other->inputs.end(), planned.inputs.begin(),
                   planned.inputs.end(), same_input)) {
      return std::move(other);
    }
  }
  leave_for_memory("[" + std::string(call.label()) + "] cannot run as [" +
                   std::string(planned.name) + "] now");
  return {};
}

void Executor::call(const IntrusivePtr<Recipe>& call) {
  if (!matches(*call)) {
    leave(unexpected(*call));
    residency_.execute(call);
    return;
  }
  for (const Recipe::Input& input : call->inputs) {
    if (input.written) ++versions_[numbering_.of(*input.storage)];
  }
  advance();
  const uint32_t op = issued_++;
  IntrusivePtr<Recipe> variant = variant_of(*call, op);
  if (!followed()) {
    residency_.execute(call);
  } else if (is_next(op) && ready(schedule_.code[next_])) {
    const Instruction& instruction = schedule_.code[next_++];
    if (instruction.in_place()) hold_instead_of_claim(instruction.overwrites);
    const BlockPlacement placement = placement_of(instruction);
    const bool kept = residency_.execute(call, placement, variant.get());
    if (instruction.in_place()) let_go(instruction.overwrites);
    if (!kept) leave_for_memory("a planned offset was not free");
    advance();
  } else {
    Call deferred{call, std::move(variant), {}};
    for (const Recipe::Output& output : call->outputs)
      deferred.outputs.emplace_back(output.storage);
    residency_.defer(call);
    defer(op, {std::move(deferred), {}});
  }
}

void Executor::upload(Storage& storage, const void* from,
                      std::shared_ptr<const void> keep_alive) {
  const StepTrace::Op* traced = expected(StepTrace::Kind::kUpload);
  if (!traced || trace_.storages[traced->outputs.front()].size != storage.size() ||
      !bind(storage, traced->outputs.front())) {
    leave("an upload of " + format_bytes(storage.size()) + " was not expected" +
          but_expected());
    residency_.upload(storage, from, std::move(keep_alive));
    return;
  }
  advance();
  const uint32_t op = issued_++;
  if (!followed()) {
    residency_.upload(storage, from, std::move(keep_alive));
  } else if (is_next(op)) {
    const BlockPlacement placement = placement_of(schedule_.code[next_++]);
    if (!residency_.upload(storage, from, std::move(keep_alive), placement)) {
      leave_for_memory("a planned offset was not free");
    }
    advance();
  } else {
    defer(op, {Upload{IntrusivePtr<Storage>(&storage), from, std::move(keep_alive)}, {}});
  }
}

void Executor::read(Storage& storage) {
  const StepTrace::Op* op = expected(StepTrace::Kind::kRead);
  if (!op || !bind(storage, op->inputs.front().storage)) {
    leave("a read of [" + std::string(storage.name) + "] was not expected" + but_expected());
    return;
  }
  // Stops at the read: later instructions may release the storage before the program has read
  // it.
  ++issued_;
  advance(/*until=*/issued_ - 1);
}

// --- applying instructions ---

bool Executor::is_next(uint32_t op) const {
  return next_ < schedule_.code.size() && is_program_op(schedule_.code[next_]) &&
         schedule_.code[next_].subject == op;
}

// Applies the next instructions as far as the program has come, or up to operator `until`.
void Executor::advance(uint32_t until) {
  while (followed() && next_ < schedule_.code.size() && ready(schedule_.code[next_])) {
    const Instruction& instruction = schedule_.code[next_];
    const bool done = apply(instruction);
    ++next_;  // not reached if apply() throws: the instruction is tried again
    if (!done && followed() && schedule_.placed) {
      leave_for_memory("memory was not in the state that the plan expects");
    }
    if (is_program_op(instruction) && instruction.subject == until) return;
  }
}

// Whether the instruction would do something else than planned before the program, which has
// just issued an operator, drops what it drops before the next one. What is away counts as
// needed until then: a run again would bring it back although it has no block, and a source of
// it would not be freed.
bool Executor::awaits_drop(const Instruction& instruction) const {
  const bool frees = instruction.what == Do::kFree && schedule_.placed;
  if (issued_ == 0 || (!instruction.again && !frees)) return false;
  const auto goes_to_scratch = [&](uint32_t number) {
    const std::vector<uint32_t>& outputs = trace_.ops[instruction.subject].outputs;
    const auto at = std::find(outputs.begin(), outputs.end(), number);
    return at != outputs.end() &&
           schedule_.blocks[instruction.first_block + (at - outputs.begin())].storage ==
               Schedule::kScratch;
  };
  const std::vector<uint32_t>& dropped = trace_.ops[issued_ - 1].released;
  return std::any_of(dropped.begin(), dropped.end(), [&](uint32_t number) {
    const Storage* storage = find(number);
    return !released_[number] && storage && storage->managed.evicted() &&
           (frees || goes_to_scratch(number));
  });
}

bool Executor::ready(const Instruction& instruction) const {
  if (is_program_op(instruction)) {
    return instruction.subject < issued_ &&
           (!instruction.in_place() || released_[instruction.overwrites]);
  }
  if (awaits_drop(instruction)) return false;
  const bool frees = instruction.what == Do::kFree && instruction.subject < released_.size();
  return !frees || claimed_[instruction.subject] || released_[instruction.subject];
}

// Returns false if the instruction could not be applied.
bool Executor::apply(const Instruction& instruction) {
  if (is_program_op(instruction)) {
    if (instruction.in_place()) hold_instead_of_claim(instruction.overwrites);
    launch(deferred_[instruction.subject], placement_of(instruction));
    if (instruction.in_place()) let_go(instruction.overwrites);
    return true;
  }
  if (instruction.what == Do::kRun) return run_again(instruction);
  if (instruction.what == Do::kFree) {
    free(instruction.subject);
    return true;
  }
  Storage* storage = find(instruction.subject);
  // The storage is dead already if a deferred operator let go of it when it ran.
  const bool is_dead = !storage || storage->residence() == Residence::kDead;
  if (is_dead) return instruction.what != Do::kCopyIn;
  switch (instruction.what) {
    case Do::kEvict: return evict(instruction.subject);
    case Do::kOffload:
      return residency_.transfers().release_by(*storage, Action::kOffload, Reason::kPlan);
    case Do::kCopyOut:
      return residency_.view().has_copy(*storage) ||
             residency_.transfers().copy_out(*storage, Reason::kPlan);
    case Do::kCopyIn: return residency_.space().copy_in(*storage, place_of(instruction));
    case Do::kDropCopy: {
      const bool done = residency_.transfers().drop_copy(*storage, Reason::kPlan);
      if (done && released_[instruction.subject] && !storage->resident())
        let_go(instruction.subject);
      return done;
    }
    case Do::kMove: return residency_.space().move(*storage, *place_of(instruction));
    case Do::kRun:
    case Do::kUpload:
    case Do::kRead:
    case Do::kFree: break;
  }
  return false;
}

bool Executor::run_again(const Instruction& instruction) {
  Storage* wanted = nullptr;
  for (uint32_t b = 0; b < instruction.blocks; ++b) {
    const uint32_t number = schedule_.blocks[instruction.first_block + b].storage;
    if (number == Schedule::kScratch) continue;
    Storage* storage = find(number);
    if (!storage) continue;  // nothing reads it any more: the call writes it to its place
    if (!storage->resident()) wanted = storage;
    if (storage->managed.needed() || claimed_[number]) continue;
    residency_.rematerialiser().claim(*storage);
    claimed_[number] = IntrusivePtr<Storage>(storage);
  }
  if (!wanted || !residency_.recompute(*wanted, placement_of(instruction))) return false;
  for (uint32_t b = 0; b < instruction.blocks; ++b) {
    const uint32_t number = schedule_.blocks[instruction.first_block + b].storage;
    if (number != Schedule::kScratch && released_[number]) keep_for_later_runs(number);
  }
  return true;
}

// Takes the storage's block. What the program has dropped is gone for good, unless a deferred
// call reads it.
bool Executor::evict(uint32_t number) {
  const IntrusivePtr<Storage> storage(find(number));
  if (released_[number]) let_go(number);
  return !storage->resident() ||
         residency_.transfers().release_by(*storage, Action::kEvict, Reason::kPlan);
}

// Ends the schedule's hold on a storage. Its place may be taken even if recipes read the
// storage that cannot run without it: the schedule evicts none of their outputs. A foreign
// storage is freed when the program lets go of it.
void Executor::free(uint32_t number) {
  if (number >= claimed_.size()) return;
  const IntrusivePtr<Storage> storage(find(number));
  if (!storage) return;
  let_go(number);
  if (schedule_.placed) residency_.rematerialiser().free_unused(*storage);
}

// Storages that the program lets go of after a deferred operator are held until the operator
// has run. A schedule with residents apart releases nothing, so it holds nothing.
void Executor::defer(uint32_t op, Deferred deferred) {
  if (!schedule_.residents_apart) {
    for (const uint32_t number : trace_.ops[op].released) {
      Storage* storage = find(number);
      // Null: the program let go of it sooner than in the trace. Evicted: who reads it holds
      // it.
      if (!storage || storage->managed.evicted()) continue;
      residency_.rematerialiser().hold(*storage);
      deferred.held.emplace_back(storage);
    }
  }
  deferred_[op] = std::move(deferred);
}

void Executor::release_held(Deferred& deferred) {
  deferred.what = std::monostate();
  for (const auto& storage : std::exchange(deferred.held, {}))
    residency_.rematerialiser().release_hold(*storage);
}

void Executor::launch(Deferred& deferred, const BlockPlacement& placement) {
  bool kept = true;
  if (auto* call = std::get_if<Call>(&deferred.what)) {
    Recipe* const variant = followed() ? call->variant.get() : nullptr;
    kept = residency_.execute_deferred(call->call, placement, variant);
  } else if (auto* upload = std::get_if<Upload>(&deferred.what)) {
    kept = residency_.upload(*upload->storage, upload->from, upload->keep_alive, placement);
  }
  release_held(deferred);
  if (!kept) leave_for_memory("a planned offset was not free");
}

// The result is valid until the next call.
BlockPlacement Executor::placement_of(const Instruction& instruction) {
  Storage* overwrites = instruction.in_place() ? find(instruction.overwrites) : nullptr;
  if (!schedule_.placed) return {BlockPlacement::How::kCompact, {}, overwrites};
  places_.clear();
  for (uint32_t b = 0; b < instruction.blocks; ++b) {
    const Schedule::Block& block = schedule_.blocks[instruction.first_block + b];
    places_.push_back(base_ + (block.at - Offset(0)));
  }
  return {BlockPlacement::How::kAt, places_, overwrites};
}

std::optional<Offset> Executor::place_of(const Instruction& instruction) const {
  if (!schedule_.placed || instruction.blocks == 0) return std::nullopt;
  return base_ + (schedule_.blocks[instruction.first_block].at - Offset(0));
}

// --- leaving the schedule ---

void Executor::leave(const std::string& why) {
  if (followed()) mismatch_ = "operator " + std::to_string(issued_) + ": " + why;
  run_deferred_in_program_order();
}

std::string Executor::but_expected() const {
  return issued_ < trace_.ops.size()
             ? ", but [" + std::string(trace_.ops[issued_].label()) + "]"
             : ", but the end of the step";
}

void Executor::leave_for_memory(const std::string& why) {
  if (!followed()) return;
  mismatch_ = why;
  memory_differed_ = true;
  run_deferred_in_program_order();
}

void Executor::run_deferred_in_program_order() {
  if (all_launched_) return;
  stop_following();
  for (uint32_t op = 0; op < issued_; ++op) launch(deferred_[op], {});
  all_launched_ = true;
}

// Ends what keeps the storage for the schedule.
void Executor::let_go(uint32_t number) {
  if (const auto storage = std::exchange(claimed_[number], {}))
    residency_.rematerialiser().unclaim(*storage);
  if (const auto storage = std::exchange(kept_[number], {}))
    residency_.rematerialiser().release_hold(*storage);
}

// Before an operator overwrites the storage, which may be claimed by nobody else then. Until it
// has run, the storage stays.
void Executor::hold_instead_of_claim(uint32_t number) {
  const auto storage = std::exchange(claimed_[number], {});
  if (!storage) return;
  if (!kept_[number]) {
    residency_.rematerialiser().hold(*storage);
    kept_[number] = storage;
  }
  residency_.rematerialiser().unclaim(*storage);
}

void Executor::stop_following() {
  for (uint32_t number = 0; number < claimed_.size(); ++number) {
    let_go(number);
    remembered_[number] = {};
  }
  residency_.measurements().set_planned(false);
  residency_.space().close_plan();
}

void Executor::end_step() {
  if (followed() && issued_ < trace_.ops.size()) {
    leave("the end of the step was not expected" + but_expected());
  } else if (followed() && !released_as_traced()) {
    mismatch_ = "a tensor is still held after the step's end";
    run_deferred_in_program_order();
  } else {
    check_range();
    advance();
    if (followed() && next_ < schedule_.code.size()) {
      leave_for_memory("the step ended before its schedule did");
    }
  }
}

void Executor::abandon() {
  if (followed()) mismatch_ = "the step failed";
  try {
    run_deferred_in_program_order();
  } catch (...) {  // the cause of the failure may stop this too
    for (Deferred& deferred : deferred_) {
      if (auto* call = std::get_if<Call>(&deferred.what)) residency_.cancel(*call->call);
      if (auto* upload = std::get_if<Upload>(&deferred.what)) {
        residency_.cancel_upload(*upload->storage);
      }
      release_held(deferred);
    }
  }
}

}  // namespace tidemark
