#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "runtime/planner/recorded_schedule.h"

namespace tidemark::planner {
namespace {

using Do = Schedule::Do;
using Instruction = Schedule::Instruction;
using Block = Schedule::Block;

constexpr uint32_t kNothing = Schedule::kScratch;

class Hoist {
 public:
  Hoist(const StepTrace& trace, Schedule schedule)
      : trace_(trace),
        old_(std::move(schedule)),
        count_(static_cast<uint32_t>(old_.code.size())),
        after_op_(count_ + 1, count_),
        dropped_(count_, false),
        runs_(trace.ops.size()),
        op_of_(trace.storages.size() + old_.foreign.size(), kNothing),
        uses_(trace.storages.size() + old_.foreign.size()),
        copies_(trace.storages.size() + old_.foreign.size()),
        writes_(trace.storages.size() + old_.foreign.size()) {
    for (uint32_t i = count_; i-- > 0;) {
      after_op_[i + 1] = is_program_op(old_.code[i]) ? i + 1
                         : i + 1 < count_            ? after_op_[i + 2]
                                                     : count_;
    }
    after_op_[0] = 0;
    for (uint32_t op = 0; op < trace.ops.size(); ++op) {
      for (const uint32_t output : trace.ops[op].outputs) op_of_[output] = op;
    }
    dropped_at_.assign(op_of_.size(), kNothing);
    for (uint32_t i = 0; i < count_; ++i) {
      note_uses(i);
      if (!is_program_op(old_.code[i])) continue;
      for (const uint32_t storage : trace.ops[old_.code[i].subject].released) {
        dropped_at_[storage] = i + 1;
      }
    }
  }

  Schedule run() {
    begin_as_it_ends();
    for (uint32_t b = 0; b < old_.blocks.size(); ++b) {
      const uint32_t release = release_of(b);
      if (release == kNothing || dropped_[release]) continue;
      uint32_t place = earliest(b, release);
      if (old_.code[release].what == Do::kEvict) {
        place = std::max(place, after_last_write_below(old_.blocks[b].storage, release));
      }
      // Once the program has let go of a storage, only recipes keep it, depending on what else
      // is away at that time. Its release must not move to before that point.
      const uint32_t dropped_at = dropped_at_[old_.blocks[b].storage];
      if (dropped_at < release && place <= dropped_at) continue;
      if (place < release) move(b, place, old_.code[release], release);
    }
    return in_new_order();
  }

 private:
  struct Moved {
    uint32_t before = 0;  // index of the instruction that it precedes
    Instruction instruction;
    uint32_t block = 0;
  };

  void note_uses(uint32_t i) {
    const Instruction& instruction = old_.code[i];
    if (instruction.what == Do::kCopyOut) copies_[instruction.subject].push_back(i);
    if (!is_program_op(instruction) && instruction.what != Do::kRun) return;
    const StepTrace::Op& op = trace_.ops[instruction.subject];
    for (const StepTrace::Input& input : op.inputs) {
      uses_[input.storage].push_back(i);
      if (input.written) writes_[input.storage].push_back(i);
    }
    if (instruction.what != Do::kRun) return;
    for (const uint32_t output : op.outputs) uses_[output].push_back(i);
    runs_[instruction.subject].push_back(i);
  }

  // One past the last entry of `at` within the block's life; 0 if there is none.
  static uint32_t after_last(const std::vector<uint32_t>& at, const Block& block) {
    const auto next = std::lower_bound(at.begin(), at.end(), block.end);
    return next == at.begin() || *std::prev(next) < block.begin ? 0 : *std::prev(next) + 1;
  }
  uint32_t release_of(uint32_t b) const {
    const Block& block = old_.blocks[b];
    if (block.storage == kNothing || block.end == 0) return kNothing;
    const Instruction& last = old_.code[block.end - 1];
    const bool releases = last.what == Do::kEvict || last.what == Do::kOffload;
    return releases && last.subject == block.storage ? block.end - 1 : kNothing;
  }

  // A missing output comes back with its siblings when its call runs again. The release
  // therefore stays behind the last run of the call before it, and does not move within a call.
  uint32_t after_last_run(const Block& block, uint32_t release) const {
    if (op_of_[block.storage] == kNothing) return 0;
    const std::vector<uint32_t>& runs = runs_[op_of_[block.storage]];
    const auto next = std::lower_bound(runs.begin(), runs.end(), after_op_[release + 1]);
    return next == runs.begin() ? 0 : *std::prev(next) + 1;
  }
  // Before a write in place, evicted storages that would be computed from the old contents are
  // brought back. An eviction therefore stays behind the last write, before `release`, of
  // anything that the storage is computed from.
  uint32_t after_last_write_below(uint32_t storage, uint32_t release) const {
    uint32_t after = 0;
    std::vector<uint32_t> pending{storage};
    std::vector<bool> seen(op_of_.size(), false);
    seen[storage] = true;
    while (!pending.empty()) {
      const uint32_t made = pending.back();
      pending.pop_back();
      const auto next = std::lower_bound(writes_[made].begin(), writes_[made].end(), release);
      if (next != writes_[made].begin()) after = std::max(after, *std::prev(next) + 1);
      if (op_of_[made] == kNothing) continue;
      for (const StepTrace::Input& input : trace_.ops[op_of_[made]].inputs) {
        if (seen[input.storage]) continue;
        seen[input.storage] = true;
        pending.push_back(input.storage);
      }
    }
    return after;
  }
  uint32_t earliest(uint32_t b, uint32_t release) const {
    const Block& block = old_.blocks[b];
    const uint32_t taken = b < old_.initial_blocks ? 0 : block.begin + 1;
    return after_op_[std::max({taken, after_last(uses_[block.storage], block),
                               after_last(copies_[block.storage], block),
                               after_last_run(block, release)})];
  }

  void move(uint32_t block, uint32_t before, const Instruction& instruction,
            uint32_t from = kNothing) {
    if (from != kNothing) dropped_[from] = true;
    moved_.push_back({before, instruction, block});
  }

  // Whether the storage ends in this step.
  bool goes(uint32_t storage) const {
    return storage < trace_.storages.size() && !trace_.storages[storage].at_end;
  }

  void begin_as_it_ends() {
    std::vector<bool> stays(op_of_.size(), false), there(op_of_.size(), false);
    gone_.assign(old_.blocks.size(), false);
    for (uint32_t s = 0; s < there.size(); ++s) {
      there[s] = s >= trace_.storages.size() || trace_.storages[s].at_start;
    }
    for (uint32_t b = 0; b < old_.initial_blocks; ++b) {
      const Block& block = old_.blocks[b];
      const uint32_t release = release_of(b);
      const bool goes_unused = release != kNothing && old_.code[release].what == Do::kOffload &&
                               after_last(uses_[block.storage], block) == 0;
      stays[block.storage] = !goes_unused;
      if (!goes_unused) continue;
      gone_[b] = dropped_[release] = true;
      const uint32_t copied = after_last(copies_[block.storage], block);
      if (copied > 0) dropped_[copied - 1] = true;
    }
    for (uint32_t b = 0; b < old_.blocks.size(); ++b) {
      const Block& block = old_.blocks[b];
      const bool comes_back = block.storage != kNothing && there[block.storage] &&
                              !goes(block.storage) && !stays[block.storage] &&
                              block.end == count_ && !gone_[b];
      if (!comes_back || release_of(b) != kNothing) continue;
      const uint32_t place = earliest(b, count_ - 1);
      if (place < count_) move(b, place, {.what = Do::kOffload, .subject = block.storage});
    }
  }

  Schedule in_new_order() {
    std::stable_sort(moved_.begin(), moved_.end(),
                     [](const Moved& a, const Moved& b) { return a.before < b.before; });
    Schedule result = old_;
    result.code.clear();
    result.blocks.clear();
    std::vector<uint32_t> now_at(count_ + 1), ended(old_.blocks.size(), kNothing);
    const auto size = [&] { return static_cast<uint32_t>(result.code.size()); };
    const auto gone = static_cast<uint32_t>(std::count(gone_.begin(), gone_.end(), true));
    auto next = moved_.begin();
    for (uint32_t i = 0; i <= count_; ++i) {
      for (; next != moved_.end() && next->before == i; ++next) {
        result.code.push_back(next->instruction);
        ended[next->block] = size();
      }
      now_at[i] = size();
      if (i == count_ || dropped_[i]) continue;
      result.code.push_back(old_.code[i]);
      if (old_.code[i].blocks > 0) result.code.back().first_block -= gone;
    }
    for (uint32_t b = 0; b < old_.blocks.size(); ++b) {
      if (gone_[b]) continue;
      Block block = old_.blocks[b];
      const bool to_the_end = block.end == count_ && release_of(b) == kNothing;
      block.begin = b < old_.initial_blocks ? 0 : now_at[block.begin];
      block.end = ended[b] != kNothing ? ended[b]
                  : to_the_end         ? size()
                                       : now_at[block.end - 1] + 1;
      result.blocks.push_back(block);
    }
    result.initial_blocks -= gone;
    return result;
  }

  const StepTrace& trace_;
  const Schedule old_;
  const uint32_t count_;
  // For the position behind an instruction: the position behind the program's operator that the
  // instruction is or belongs to.
  std::vector<uint32_t> after_op_;
  std::vector<bool> dropped_;                // instructions moved or removed
  std::vector<std::vector<uint32_t>> runs_;  // per operator: instructions that run it
  std::vector<uint32_t> op_of_;              // per storage: the operator that makes it
  std::vector<std::vector<uint32_t>> uses_, copies_, writes_;  // per storage: instructions
  // Per storage: the instruction before which the program lets go of it.
  std::vector<uint32_t> dropped_at_;
  std::vector<bool> gone_;  // initial blocks that were removed
  std::vector<Moved> moved_;
};

}  // namespace

Schedule hoist_releases(const StepTrace& trace, Schedule schedule) {
  return Hoist(trace, std::move(schedule)).run();
}

}  // namespace tidemark::planner
