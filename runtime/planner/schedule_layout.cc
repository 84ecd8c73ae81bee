#include "runtime/planner/schedule_layout.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>

#include "runtime/planner/layout/moving_layout.h"

namespace tidemark::planner {
namespace {

using Block = Schedule::Block;

// The buffers to lay out: a block, or a block and those that take over its space.
struct Buffers {
  explicit Buffers(const Schedule& schedule)
      : before(taken_over(schedule)), of_block(before.size()) {
    for (uint32_t b = 0; b < before.size(); ++b) {
      of_block[b] = continues(b) ? of_block[before[b]] : count++;
    }
  }
  bool continues(uint32_t block) const { return before[block] != Schedule::kScratch; }

  std::vector<uint32_t> before;  // as taken_over()
  std::vector<uint32_t> of_block;
  uint32_t count = 0;
};

// Writes the schedule anew, with moves. Tracks the number of each block in the new schedule.
class Writer {
 public:
  Writer(const Schedule& old, const Buffers& buffers, const MovingLayout& layout,
         int64_t times_per_instruction)
      : old_(old),
        buffers_(buffers),
        layout_(layout),
        scale_(times_per_instruction),
        places_(layout.offsets),
        owner_(buffers.count) {
    result_ = old;
    result_.code.clear();
    result_.blocks.clear();
    latest_.resize(old.blocks.size());
  }

  Schedule run() {
    for (uint32_t b = 0; b < old_.initial_blocks; ++b) take(b);
    std::vector<uint32_t> now_at(old_.code.size() + 1);
    auto next = layout_.moves.begin();
    for (uint32_t i = 0; i <= old_.code.size(); ++i) {
      for (; next != layout_.moves.end() && next->time / scale_ == i; ++next) move(*next);
      now_at[i] = size();
      if (i == old_.code.size()) break;
      Schedule::Instruction instruction = old_.code[i];
      const uint32_t first = instruction.first_block;
      instruction.first_block = static_cast<uint32_t>(result_.blocks.size());
      for (uint32_t k = 0; k < instruction.blocks; ++k) take(first + k);
      result_.code.push_back(instruction);
    }
    for (uint32_t b = 0; b < old_.blocks.size(); ++b) {
      const uint32_t end = old_.blocks[b].end;
      const bool to_the_end = end == old_.code.size();
      result_.blocks[latest_[b]].end = to_the_end ? size() : end == 0 ? 0 : now_at[end - 1] + 1;
    }
    // A block that is taken over ends where the next begins.
    for (uint32_t b = 0; b < old_.blocks.size(); ++b) {
      if (buffers_.continues(b)) {
        result_.blocks[latest_[buffers_.before[b]]].end = now_at[old_.blocks[b].begin];
      }
    }
    result_.placed = true;
    result_.peak = Bytes(0);
    result_.moved = layout_.moved;
    for (const Block& block : result_.blocks) {
      result_.peak = std::max(result_.peak, block.at + block.size - Offset(0));
    }
    return std::move(result_);
  }

 private:
  uint32_t size() const { return static_cast<uint32_t>(result_.code.size()); }

  // Takes the block with the instruction written next.
  void take(uint32_t b) {
    owner_[buffers_.of_block[b]] = b;
    latest_[b] = static_cast<uint32_t>(result_.blocks.size());
    Block block = old_.blocks[b];
    block.begin = size();
    block.at = places_[buffers_.of_block[b]];
    result_.blocks.push_back(block);
  }
  void move(const Move& move) {
    const auto buffer = static_cast<uint32_t>(move.buffer);
    const uint32_t b = owner_[buffer];
    places_[buffer] = move.to;
    result_.blocks[latest_[b]].end = size();
    take(b);
    result_.code.push_back({.what = Schedule::Do::kMove,
                            .subject = old_.blocks[b].storage,
                            .first_block = latest_[b],
                            .blocks = 1});
  }

  const Schedule& old_;
  const Buffers& buffers_;
  const MovingLayout& layout_;
  const int64_t scale_;
  Schedule result_;
  std::vector<Offset> places_;    // by buffer: now
  std::vector<uint32_t> owner_;   // by buffer: its block now
  std::vector<uint32_t> latest_;  // by block: its number in the new schedule
};

}  // namespace

void prefer_initial_places(UnplacedSchedule& unplaced, const StepTrace& trace, Bytes space) {
  const std::vector<Schedule::Block>& blocks = unplaced.schedule.blocks;
  std::unordered_map<uint32_t, Offset> at;
  Offset to(0);
  const auto put = [&](auto wanted) {
    for (uint32_t b = 0; b < unplaced.schedule.initial_blocks; ++b) {
      const uint32_t storage = blocks[b].storage;
      const bool foreign = storage >= trace.storages.size();
      if (!wanted(foreign || trace.storages[storage].at_end, is_small(blocks[b].size, space))) {
        continue;
      }
      at[storage] = to;
      to = to + blocks[b].size;
    }
  };
  put([](bool stays, bool small) { return stays && small; });
  put([](bool stays, bool small) { return stays && !small; });
  put([](bool stays, bool) { return !stays; });
  for (const Schedule::Block& block : blocks) {
    const auto place = at.find(block.storage);
    unplaced.preferred.push_back(place == at.end() ? std::nullopt
                                                   : std::optional<Offset>(place->second));
  }
}

Nanos time_between_steps(const Schedule& schedule, const PlanLimits& limits) {
  Bytes moved = schedule.moved;
  for (const Schedule::Instruction& it : schedule.code) {
    if (it.what == Schedule::Do::kMove) moved -= schedule.blocks[it.first_block].size;
  }
  return moved > Bytes(0) ? limits.move_time(moved) : Nanos(0);
}

std::optional<Schedule> place_blocks(const UnplacedSchedule& unplaced, const PlanLimits& limits,
                                     int64_t nodes) {
  const Schedule& schedule = unplaced.schedule;
  // Blocks of one instruction are taken one after the other. Moves that make space for any of
  // them may all come first: none of their targets overlaps these blocks.
  uint32_t most = 1;
  for (const auto& instruction : schedule.code) most = std::max(most, instruction.blocks);
  const int64_t scale = int64_t{most} + 1;
  const Buffers buffers(schedule);
  MovingProblem problem;
  problem.capacity = limits.space;
  problem.buffers.resize(buffers.count);
  problem.preferred_offsets.resize(unplaced.preferred.empty() ? 0 : buffers.count);
  const auto time = [&](uint32_t instruction) { return int64_t{instruction} * scale; };
  for (uint32_t b = 0; b < schedule.blocks.size(); ++b) {
    const Block& block = schedule.blocks[b];
    int64_t begin = time(block.begin);
    if (b < schedule.initial_blocks) {
      begin = -1;
    } else {
      begin += b - schedule.code[block.begin].first_block;
    }
    const uint32_t buffer = buffers.of_block[b];
    if (buffers.continues(b)) {
      problem.buffers[buffer].end = time(block.end);
    } else {
      problem.buffers[buffer] = {begin, time(block.end), block.size};
    }
    if (!unplaced.preferred.empty() && unplaced.preferred[b]) {
      problem.preferred_offsets[buffer] = unplaced.preferred[b];
    }
    const bool scratch = block.storage == Schedule::kScratch;
    if (scratch) problem.pinned.push_back({buffer, begin, time(block.end)});
    // The other blocks of the instruction are taken after this one, and moves come before all
    // of them.
    if (!scratch && b >= schedule.initial_blocks) {
      problem.pinned.push_back({buffer, begin, time(block.begin + 1)});
    }
  }
  // Where moves take no time, a wait is never worth it.
  const bool may_wait = std::isfinite(limits.move_bandwidth);
  if (may_wait) problem.fee = limits.moved_in(limits.least_move);
  for (size_t i = 0; may_wait && i < unplaced.issued.size(); ++i) {
    problem.clock.insert(problem.clock.end(), static_cast<size_t>(scale),
                         limits.moved_in(unplaced.issued[i]));
  }
  for (const PinnedInterval& pinned : unplaced.pinned) {
    const Bytes until =
        pinned.until && may_wait ? limits.moved_in(*pinned.until) : MovingProblem::kNever;
    problem.pinned.push_back(
        {buffers.of_block[pinned.block], time(pinned.begin), time(pinned.end), until});
  }
  Limits effort;
  effort.seconds = 1e9;
  effort.nodes = nodes;
  const auto layout = lay_out_moving(problem, effort);
  if (!layout) return std::nullopt;
  Schedule placed = Writer(schedule, buffers, *layout, scale).run();
  placed.time += time_between_steps(placed, limits);
  for (const Move& move : layout->moves) {
    placed.time += limits.move_time(problem.buffers[move.buffer].size);
  }
  return placed;
}

}  // namespace tidemark::planner
