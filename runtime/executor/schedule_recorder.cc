#include "runtime/executor/schedule_recorder.h"

#include <utility>

namespace tidemark {

void ScheduleRecorder::begin_step() {
  schedule_ = {};
  complete_ = true;
  running_ = false;
  read_ = nullptr;
  op_of_.clear();
  position_.clear();
  open_.clear();
  away_.clear();
  initial_.clear();
  for (const auto& storage : residency_.storages().in_use()) {
    position_[storage.get()] = static_cast<uint32_t>(initial_.size());
    initial_.push_back({storage->size()});
    if (storage->resident()) take_block(*storage);
    if (storage->residence() == Residence::kOffloaded) away_.insert(storage.get());
  }
  schedule_.initial_blocks = static_cast<uint32_t>(schedule_.blocks.size());
  recording_ = true;
  residency_.storage_events().listen(*this);
}

void ScheduleRecorder::stop() {
  if (std::exchange(recording_, false)) residency_.storage_events().ignore(*this);
}

void ScheduleRecorder::settle_number(const Storage& storage) {
  const auto position = position_.find(&storage);
  if (position == position_.end()) return;
  if (steps_.numbering().has(storage)) {
    initial_[position->second].number = steps_.numbering().of(storage);
  }
  position_.erase(position);
}

std::optional<Schedule> ScheduleRecorder::end_step(size_t storages) {
  const auto last = static_cast<uint32_t>(schedule_.code.size());
  for (const auto& [storage, block] : open_) schedule_.blocks[block].end = last;
  while (!position_.empty()) settle_number(*position_.begin()->first);
  for (Initial& initial : initial_) {
    if (initial.number != Schedule::kScratch) continue;
    initial.number = static_cast<uint32_t>(storages + schedule_.foreign.size());
    schedule_.foreign.push_back(initial.size);
  }
  const auto resolve = [&](uint32_t& storage) {
    const uint32_t position = Schedule::kScratch - 1 - storage;
    if (storage != Schedule::kScratch && position < initial_.size())
      storage = initial_[position].number;
  };
  for (Schedule::Instruction& instruction : schedule_.code) {
    if (!names_op(instruction)) resolve(instruction.subject);
  }
  for (Schedule::Block& block : schedule_.blocks) resolve(block.storage);
  stop();
  if (!complete_) return std::nullopt;
  return std::move(schedule_);
}

uint32_t ScheduleRecorder::number_of(const Storage& storage) {
  if (storage.category == Category::kWorkspace) return Schedule::kScratch;
  const auto position = position_.find(&storage);
  if (position != position_.end()) return Schedule::kScratch - 1 - position->second;
  const StepNumbering& numbering = steps_.numbering();
  if (numbering.has(storage)) return numbering.of(storage);
  complete_ = false;
  return Schedule::kScratch;
}

void ScheduleRecorder::read(const Storage& storage) { read_ = &storage; }

void ScheduleRecorder::run(const Recipe& call, bool again) {
  finish_run();
  if (!again) op_of_[&call] = current_op();
  const auto op = op_of_.find(&call);
  if (op == op_of_.end()) complete_ = false;  // the operator belongs to an earlier step
  running_ = true;
  run_ = {.what = Do::kRun, .again = again, .subject = op == op_of_.end() ? 0 : op->second};
  run_blocks_.clear();
  run_call_ = &call;
}

// When a call runs again, its resident outputs are written to scratch. If one of them is
// evicted for a later block of the same call, the schedule, which decides before the call runs,
// no longer has that output resident. It is recorded as brought back in the place of scratch
// and evicted again.
void ScheduleRecorder::place(const Storage& storage) {
  const Storage* evicted = nullptr;
  if (const size_t i = run_blocks_.size(); i < run_call_->outputs.size()) {
    const Storage* output = run_call_->outputs[i].storage;
    const bool made_way = output && output != &storage &&
                          output->residence() == Residence::kEvicted && output->users() > 0;
    if (made_way) evicted = output;
  }
  run_blocks_.push_back({&storage, evicted});
}

void ScheduleRecorder::note_evicted_sibling(const Storage& storage) {
  if (!running_) return;
  for (size_t i = 0; i < run_blocks_.size() && i < run_call_->outputs.size(); ++i) {
    if (run_call_->outputs[i].storage == &storage) run_blocks_[i].evicted = &storage;
  }
}

// The blocks of the running call belong to an instruction that follows those that made space
// for them.
void ScheduleRecorder::finish_run() {
  if (!std::exchange(running_, false)) return;
  run_.first_block = static_cast<uint32_t>(schedule_.blocks.size());
  run_.blocks = static_cast<uint32_t>(run_blocks_.size());
  const auto now = static_cast<uint32_t>(schedule_.code.size());
  schedule_.code.push_back(run_);
  for (const auto& [storage, evicted] : run_blocks_) {
    const Storage& named = evicted ? *evicted : *storage;
    const uint32_t number = number_of(named);
    if (number != Schedule::kScratch) {
      open_[&named] = static_cast<uint32_t>(schedule_.blocks.size());
    }
    schedule_.blocks.push_back({number, storage->size(), now, now + 1});
  }
  for (const auto& [storage, evicted] : run_blocks_) {
    if (!evicted) continue;
    add(Do::kEvict, *evicted);
    end_block(*evicted);
  }
}

// Adds an instruction that takes no block.
void ScheduleRecorder::add(Do what, const Storage& storage) {
  schedule_.code.push_back({.what = what, .subject = number_of(storage)});
}

// Begins a block with the instruction added last, or before the step.
void ScheduleRecorder::take_block(const Storage& storage) {
  const auto block = static_cast<uint32_t>(schedule_.blocks.size());
  const auto count = static_cast<uint32_t>(schedule_.code.size());
  if (count > 0) {
    schedule_.code.back().first_block = block;
    schedule_.code.back().blocks = 1;
  }
  open_[&storage] = block;
  schedule_.blocks.push_back(
      {number_of(storage), storage.size(), count > 0 ? count - 1 : 0, 0});
}

// Ends the block with the instruction added last.
void ScheduleRecorder::end_block(const Storage& storage) {
  const auto block = open_.find(&storage);
  if (block == open_.end()) return;
  schedule_.blocks[block->second].end = static_cast<uint32_t>(schedule_.code.size());
  open_.erase(block);
}

void ScheduleRecorder::on_event(const StorageEvent& event) noexcept {
  using Kind = StorageEvent::Kind;
  if (goes_away(event)) away_.insert(event.storage);
  // A storage that dies on a tier has no block to end.
  const bool was_away = ends_absence(event) && away_.erase(event.storage) > 0;
  const auto ends_with = [&](Do what) {
    add(what, *event.storage);
    end_block(*event.storage);
  };
  switch (event.kind) {
    case Kind::kRun: run(*event.call, event.reason != Reason::kNone); break;
    case Kind::kPlaced: place(*event.storage); break;
    case Kind::kUploaded:
      schedule_.code.push_back({.what = Do::kUpload, .subject = current_op()});
      take_block(*event.storage);
      break;
    case Kind::kReloaded:
    case Kind::kPrefetched:
      add(Do::kCopyIn, *event.storage);
      take_block(*event.storage);
      break;
    case Kind::kEvicted:
      ends_with(Do::kEvict);
      note_evicted_sibling(*event.storage);
      break;
    case Kind::kOffloaded:
    case Kind::kDropped: ends_with(Do::kOffload); break;
    case Kind::kCopiedOut: add(Do::kCopyOut, *event.storage); break;
    case Kind::kCopyDropped: add(Do::kDropCopy, *event.storage); break;
    case Kind::kUsed:
      finish_run();
      if (event.storage == read_) {
        schedule_.code.push_back({.what = Do::kRead, .subject = current_op()});
        read_ = nullptr;
      }
      break;
    case Kind::kLeft:
      if (has_block(*event.storage)) ends_with(Do::kFree);
      break;
    case Kind::kCallDone:
      finish_run();  // for a call that uses nothing
      break;
    case Kind::kDied:
      if (was_away) add(Do::kFree, *event.storage);
      break;
    case Kind::kGone:
      if (was_away) add(Do::kFree, *event.storage);
      settle_number(*event.storage);
      break;
    case Kind::kCall:
    case Kind::kIssued:
    case Kind::kMoved:
    case Kind::kUnused: break;
  }
}

}  // namespace tidemark
