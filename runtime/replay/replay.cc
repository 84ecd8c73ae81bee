#include "runtime/replay/replay.h"

#include <algorithm>
#include <utility>

namespace tidemark {
namespace {

bool same_call(const StepTrace::Op& op, const Recipe& call) {
  return op.kind == StepTrace::Kind::kCall && op.signature == call_signature(call) &&
         op.inputs.size() == call.inputs.size() && op.outputs.size() == call.outputs.size() &&
         op.workspace == align_up(call.workspace) && op.name == call.name();
}

}  // namespace

bool Replay::applies(const PlannedStep& step, const Residency& residency) {
  if (!step.memory) {
    return residency.bytes_in_use() + step.peak <= residency.arena().offsets().capacity();
  }
  size_t expected = 0;
  for (const auto& storage : step.there) {
    if (!storage) continue;
    if (storage->users() == 0) return false;
    ++expected;
  }
  return residency.in_use().size() == expected;
}

Replay::Replay(const PlannedStep& step, Residency& residency)
    : step_(step),
      residency_(residency),
      versions_(step.graph.storages.size(), 0),
      gone_(step.graph.storages.size(), false),
      issued_(step.graph.ops.size()) {
  numbering_.begin_step();
  if (step.memory) {
    for (size_t item = 0; item < step.there.size(); ++item) {
      if (step.there[item]) bind(*step.there[item], static_cast<uint32_t>(item));
    }
    memory_.emplace(*step.memory, numbering_, residency_);
    if (!memory_->begin_step()) mismatch_ = memory_->failure();
    return;
  }
  base_ = residency_.pack();
  if (step.peak > Bytes(0)) residency_.open_plan(base_, step.peak);
}

Replay::~Replay() { residency_.close_plan(); }

// Is the storage the one that bears that number? From now on, if it has none.
bool Replay::bind(Storage& storage, uint32_t number) {
  if (numbering_.has(storage)) return numbering_.of(storage) == number;
  if (numbering_.find(number)) return false;
  numbering_.assign(storage, number);
  return true;
}

void Replay::gone(const Storage& storage) { numbering_.forget(storage); }

bool Replay::begins_with(const PlannedStep& step, const Recipe& call) {
  const StepTrace::Op& op = step.graph.ops.front();
  if (!same_call(op, call)) return false;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    if (step.graph.storages[op.inputs[i].storage].size != call.inputs[i].storage->size()) {
      return false;
    }
  }
  return true;
}

bool Replay::begins_with(const PlannedStep& step, const Storage& uploaded) {
  const StepTrace::Op& op = step.graph.ops.front();
  return op.kind == StepTrace::Kind::kUpload &&
         step.graph.storages[op.outputs.front()].size == uploaded.size();
}

// Whether the plan for memory holds no longer.
void Replay::look_for_failure() {
  if (!mismatch_.empty()) return;
  if (memory_) {
    mismatch_ = memory_->failure();
  } else if (step_.peak > Bytes(0) && !residency_.plan_is_open()) {
    mismatch_ = "what is not in the plan had no room beside it";
  }
}

// The operator that the plan has now, if it is of that kind.
const StepTrace::Op* Replay::expected(StepTrace::Kind kind) {
  look_for_failure();
  if (!mismatch_.empty() || matched_ == step_.graph.ops.size()) return nullptr;
  const StepTrace::Op& op = step_.graph.ops[matched_];
  return op.kind == kind && released_as_planned() ? &op : nullptr;
}

// What the plan has let go of by now has to be gone: its place may be taken from here on.
bool Replay::released_as_planned() const {
  if (matched_ == 0) return true;
  const std::vector<uint32_t>& released = step_.graph.ops[matched_ - 1].released;
  return std::all_of(released.begin(), released.end(),
                     [&](uint32_t item) { return gone_[item]; });
}

void Replay::unused(const Storage& storage) {
  if (numbering_.has(storage)) gone_[numbering_.of(storage)] = true;
}

// Numbers the inputs as it goes.
bool Replay::matches(const Recipe& call) {
  const StepTrace::Op* op = expected(StepTrace::Kind::kCall);
  if (!op || !same_call(*op, call)) return false;
  for (size_t i = 0; i < op->inputs.size(); ++i) {
    const Recipe::Input& input = call.inputs[i];
    const StepTrace::Input& planned = op->inputs[i];
    if (!bind(*input.storage, planned.storage) || planned.written != input.written ||
        versions_[planned.storage] != planned.version ||
        step_.graph.storages[planned.storage].size != input.storage->size()) {
      return false;
    }
  }
  for (size_t i = 0; i < op->outputs.size(); ++i) {
    Storage& output = *call.outputs[i].storage;
    if (step_.graph.storages[op->outputs[i]].size != output.size() ||
        !bind(output, op->outputs[i])) {
      return false;
    }
  }
  return true;
}

void Replay::place(Storage& storage) {
  if (memory_) return;
  const std::optional<Bytes> at = step_.storage_at[numbering_.of(storage)];
  if (at) storage.planned_at = base_ + *at;
}

void Replay::call(const IntrusivePtr<Recipe>& call) {
  if (!matches(*call)) {
    fail(std::string("[") + call->label() + "] was not expected");
    residency_.execute(call);
    return;
  }
  for (const Recipe::Input& input : call->inputs) {
    if (input.written) ++versions_[numbering_.of(*input.storage)];
  }
  for (const Recipe::Output& output : call->outputs) place(*output.storage);
  if (!memory_) {
    if (const auto at = step_.workspace_at[matched_]) call->workspace_at = base_ + *at;
  }
  if (step_.in_program_order) {
    ++matched_;
    residency_.execute(call);
    return;
  }
  Call put_off{call, {}};
  for (const Recipe::Output& output : call->outputs)
    put_off.outputs.emplace_back(output.storage);
  residency_.defer(*call);
  issue(std::move(put_off));
}

void Replay::upload(Storage& storage, const void* from,
                    std::shared_ptr<const void> keep_alive) {
  const StepTrace::Op* op = expected(StepTrace::Kind::kUpload);
  if (!op || step_.graph.storages[op->outputs.front()].size != storage.size() ||
      !bind(storage, op->outputs.front())) {
    fail("an upload of " + format_bytes(storage.size()) + " was not expected");
    residency_.upload(storage, from, std::move(keep_alive));
    return;
  }
  place(storage);
  if (step_.in_program_order) {
    ++matched_;
    residency_.upload(storage, from, std::move(keep_alive));
    return;
  }
  issue(Upload{IntrusivePtr<Storage>(&storage), from, std::move(keep_alive)});
}

void Replay::read(Storage& storage) {
  const StepTrace::Op* op = expected(StepTrace::Kind::kRead);
  if (!op || !bind(storage, op->inputs.front().storage)) {
    fail("a read of [" + std::string(storage.name) + "] was not expected");
    return;
  }
  ++matched_;
  launch_before(matched_);
}

void Replay::issue(Issued issued) {
  const uint32_t number = matched_++;
  issued_[number] = std::move(issued);
  launch_before(number);
}

// What the plan has next, as long as it is one of the program's first `matched` operators.
void Replay::launch_before(uint32_t matched) {
  if (step_.in_program_order) return;
  while (launched_ < step_.order.size() && step_.order[launched_] < matched) {
    launch(issued_[step_.order[launched_]]);
    ++launched_;
  }
}

void Replay::launch(Issued& issued) {
  if (auto* put_off = std::get_if<Call>(&issued)) {
    residency_.execute_deferred(put_off->call);
  } else if (auto* upload = std::get_if<Upload>(&issued)) {
    residency_.upload(*upload->storage, upload->from, upload->keep_alive);
  }
  issued = std::monostate();
}

void Replay::fail(const std::string& why) {
  if (mismatch_.empty()) {
    mismatch_ = "operator " + std::to_string(matched_) + ": " + why;
    const auto& ops = step_.graph.ops;
    mismatch_ += matched_ < ops.size() ? ", but [" + std::string(ops[matched_].label()) + "]"
                                       : ", but the end of the step";
  }
  run_in_program_order();
}

void Replay::run_in_program_order() {
  residency_.close_plan();
  if (memory_) memory_->stop();
  for (uint32_t k = 0; k < matched_; ++k) launch(issued_[k]);
}

void Replay::end_step() {
  if (mismatch_.empty() && matched_ < step_.graph.ops.size()) {
    fail("the step ended");
  } else if (mismatch_.empty() && !released_as_planned()) {
    mismatch_ = "a tensor is held on to after the step's end";
    run_in_program_order();
  } else if (mismatch_.empty()) {
    launch_before(matched_);
    look_for_failure();
  }
  if (!memory_) return;
  residency_.bring_back_survivors();
  memory_->end_step();
  if (mismatch_.empty()) mismatch_ = memory_->failure();
}

void Replay::abandon() {
  if (mismatch_.empty()) mismatch_ = "the step failed";
  try {
    run_in_program_order();
  } catch (const Error&) {
    for (Issued& issued : issued_) {
      if (auto* put_off = std::get_if<Call>(&issued)) residency_.give_up(*put_off->call);
      issued = std::monostate();
    }
  }
}

}  // namespace tidemark
