#include "runtime/policy/forecast.h"

#include <algorithm>
#include <utility>

namespace tidemark {
namespace {

// Whether storages that live on have the same numbers in both.
bool number_alike(const StepTable& a, const StepTable& b) {
  return std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(),
                    [](const StepTable::Item& x, const StepTable::Item& y) {
                      return x.persistent == y.persistent &&
                             (!x.persistent || x.bytes == y.bytes);
                    });
}

bool same_call(const StepTrace::Op& a, const StepTrace::Op& b) {
  return a.signature == b.signature && a.inputs == b.inputs && a.outputs == b.outputs;
}

}  // namespace

void Forecast::begin_step() {
  recorder_.begin_step();
  calls_ = 0;
  time_ = Nanos(0);
  in_step_ = true;
  numbers_hold_ = true;
  known_ = !last().calls.empty();
  ++step_;
}

void Forecast::end_step() {
  in_step_ = false;
  const bool repeated = std::exchange(known_, false) && calls() == last().calls.size();
  StepTrace trace = recorder_.end_step();
  if (calls_ == 0) return;
  if (!repeated && !last().calls.empty()) {
    program_ = programs_.size();
    if (programs_.size() < kMaxPrograms) {
      programs_.emplace_back();
    } else {
      const auto oldest =
          std::min_element(programs_.begin(), programs_.end(),
                           [](const Program& a, const Program& b) { return a.seen < b.seen; });
      program_ = static_cast<size_t>(oldest - programs_.begin());
    }
  }
  StepTable table(trace);
  const uint32_t first_seen = repeated ? programs_[program_].first_seen : step_;
  programs_[program_] = {std::move(trace), std::move(table), first_seen, step_};
}

// The call of the last step with that number.
const StepTrace::Op& Forecast::Program::call(size_t number) const {
  return trace.ops[last.calls[number].op];
}

// Finds the program by the first call of this step.
void Forecast::find_program() {
  const auto begins_so = [&](const Program& program) {
    return !program.last.calls.empty() &&
           same_call(program.call(0), recorder_.trace().ops.back());
  };
  if (begins_so(programs_[program_])) return;
  size_t found = programs_.size();
  for (size_t k = 0; k < programs_.size(); ++k) {
    const bool later = found == programs_.size() || programs_[k].seen > programs_[found].seen;
    if (begins_so(programs_[k]) && later) found = k;
  }
  known_ = found < programs_.size();
  if (known_) turn_to(found);
}

void Forecast::turn_to(size_t program) {
  numbers_hold_ = numbers_hold_ && number_alike(last(), programs_[program].last);
  program_ = program;
  if (!numbers_hold_) recorder_.numbering().forget_others();
}

void Forecast::record(const Recipe& recipe, Nanos cost) {
  if (!in_step_) return;
  recorder_.call(recipe, recipe.cost_key, cost);
  const StepTrace::Op& call = recorder_.trace().ops.back();
  time_ += call.cost;
  if (calls_++ == 0) {
    find_program();
  } else {
    known_ = known_ && calls_ <= last().calls.size() &&
             same_call(programs_[program_].call(calls_ - 1), call);
  }
}

void Forecast::on_event(const StorageEvent& event) noexcept {
  if (event.kind == StorageEvent::Kind::kIssued) record(*event.call, event.cost);
  if (event.kind == StorageEvent::Kind::kUploaded) uploaded(*event.storage);
  if (event.kind == StorageEvent::Kind::kGone) ended(*event.storage);
  if (loses_bytes(event) && event.storage->users() == 0) ended(*event.storage);
}

void Forecast::uploaded(Storage& storage) {
  if (in_step_) recorder_.upload(storage);
}

void Forecast::ended(const Storage& storage) {
  // A storage that a recomputation brings back for a moment ends again; it is unknown by then.
  if (in_step_) recorder_.unused(storage);
  recorder_.gone(storage);
}

uint32_t Forecast::item_of(const Storage& storage) const {
  const StepNumbering& numbers = recorder_.numbering();
  uint32_t item = StepTable::kNone;
  if (numbers.has(storage)) {
    item = numbers.of(storage);
  } else if (numbers_hold_ && numbers.had(storage)) {
    // A storage not used yet in this step lives on from the last one.
    item = numbers.of_before(storage);
  }
  return item < last().items.size() ? item : StepTable::kNone;
}

size_t Forecast::next_call(const Storage& storage) const {
  const uint32_t item = item_of(storage);
  if (item == StepTable::kNone) return last().calls.size();
  const std::vector<uint32_t>& uses = last().items[item].uses;
  const auto next = std::lower_bound(uses.begin(), uses.end(), calls_);
  return next == uses.end() ? last().calls.size() : *next;
}

Nanos Forecast::until_next_use(const Storage& storage) const {
  const uint32_t item = item_of(storage);
  if (item == StepTable::kNone) return kNever;
  // All times are those of the last step: expected costs may have changed since.
  const Nanos now =
      calls() < last().calls.size() ? last().calls[calls()].begin : last().duration;
  const size_t next = next_call(storage);
  if (next < last().calls.size()) return last().calls[next].begin - now;
  if (!last().items[item].persistent || last().items[item].uses.empty()) return kNever;
  return last().duration - now + last().calls[last().items[item].uses.front()].begin;
}

}  // namespace tidemark
