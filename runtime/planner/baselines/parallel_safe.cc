#include "runtime/planner/baselines/parallel_safe.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "runtime/schedule/simulate.h"

namespace tidemark::planner {
namespace {

using Do = Schedule::Do;
using Instruction = Schedule::Instruction;
using Block = Schedule::Block;

Schedule without_moves(const Schedule& old, size_t storages) {
  Schedule result = old;
  result.code.clear();
  result.blocks.clear();
  result.moved = Bytes(0);
  std::vector<uint32_t> block_of(storages), now_at(old.code.size() + 1);
  const auto take = [&](Block block, uint32_t begin) {
    block.begin = begin;
    if (block.storage != Schedule::kScratch) {
      block_of[block.storage] = static_cast<uint32_t>(result.blocks.size());
    }
    result.blocks.push_back(block);
  };
  for (uint32_t b = 0; b < old.initial_blocks; ++b) take(old.blocks[b], 0);
  for (size_t i = 0; i < old.code.size(); ++i) {
    const auto now = static_cast<uint32_t>(result.code.size());
    now_at[i] = now;
    Instruction it = old.code[i];
    if (it.what == Do::kMove) {
      result.blocks[block_of[it.subject]].end = old.blocks[it.first_block].end;
      continue;
    }
    const uint32_t first =
        std::exchange(it.first_block, static_cast<uint32_t>(result.blocks.size()));
    for (uint32_t b = first; b < first + it.blocks; ++b) take(old.blocks[b], now);
    result.code.push_back(it);
  }
  now_at.back() = static_cast<uint32_t>(result.code.size());
  for (Block& block : result.blocks) block.end = now_at[block.end];
  return result;
}

// How far each queue has come: the number of its entries that are known to be done.
enum Queue : uint8_t { kCompute, kOut, kIn };
using Progress = std::array<uint32_t, 3>;

void join(Progress& progress, const Progress& other) {
  for (size_t q = 0; q < progress.size(); ++q) progress[q] = std::max(progress[q], other[q]);
}

// Follows what each instruction waits for if every block has bytes of its own.
class DataWaits {
 public:
  DataWaits(const StepTrace& trace, const Schedule& schedule)
      : trace_(trace),
        s_(schedule),
        used_(schedule.blocks.size()),
        known_(schedule.blocks.size()),
        storages_(trace.storages.size() + schedule.foreign.size()) {
    for (uint32_t b = 0; b < s_.initial_blocks; ++b) storages_[s_.blocks[b].storage].block = b;
    for (uint32_t s = 0; s < trace.storages.size(); ++s) {
      storages_[s].has_copy = trace.storages[s].at_start && storages_[s].block == kNoBlock;
    }
    for (const Instruction& it : s_.code) apply(it);
  }

  // Whether the first user of `b` waits for all users of `a` anyway.
  bool waits_anyway(uint32_t a, uint32_t b) const {
    if (s_.blocks[a].end > s_.blocks[b].begin) return false;
    for (size_t q = 0; q < used_[a].size(); ++q) {
      if (used_[a][q] > known_[b][q]) return false;
    }
    return true;
  }

 private:
  static constexpr uint32_t kNoBlock = Schedule::kScratch;
  struct Storage {
    uint32_t block = kNoBlock;  // the last one; none: it is away, or a resident that lies apart
    bool has_copy = false;
    Progress ready{};   // once this much is done, its bytes are written
    Progress copied{};  // ... its copy is out
  };

  // The next entry of the queue, which waits for `on`. Returns what is done when it is done.
  Progress enter(Queue queue, const Progress& on) {
    Progress& now = queues_[queue];
    join(now, on);
    join(now, issued_);
    ++now[queue];
    return now;
  }
  // The entry with which `done` ends uses the block.
  void use(uint32_t block, Queue queue, const Progress& done) {
    if (block != kNoBlock) used_[block][queue] = done[queue];
  }
  // ... and is its first user.
  void take(uint32_t b, Queue queue, const Progress& done) {
    known_[b] = done;
    --known_[b][queue];  // not itself
    use(b, queue, done);
    if (s_.blocks[b].storage == Schedule::kScratch) return;
    storages_[s_.blocks[b].storage].block = b;
    storages_[s_.blocks[b].storage].ready = done;
  }

  void apply(const Instruction& it) {
    if (it.what == Do::kUpload) {
      const Progress done = enter(kIn, {});
      for (uint32_t b = it.first_block; b < it.first_block + it.blocks; ++b) {
        take(b, kIn, done);
      }
      return;
    }
    if (names_op(it)) return run_op(it);
    Storage& storage = storages_[it.subject];
    switch (it.what) {
      case Do::kCopyOut:
      case Do::kOffload:
        if (storage.has_copy) break;
        storage.copied = enter(kOut, storage.ready);
        storage.has_copy = true;
        use(storage.block, kOut, storage.copied);
        break;
      case Do::kCopyIn: take(it.first_block, kIn, enter(kIn, storage.copied)); break;
      case Do::kFree:
      case Do::kEvict:
      case Do::kDropCopy: storage.has_copy = false; break;
      default: break;
    }
  }

  void run_op(const Instruction& it) {
    const auto& inputs = trace_.ops[it.subject].implementation(it.variant).inputs;
    Progress on{};
    for (const StepTrace::Input& input : inputs) {
      const Storage& storage = storages_[input.storage];
      join(on, storage.ready);
      if (input.written) join(on, storage.copied);
    }
    if (it.in_place()) join(on, storages_[it.overwrites].copied);
    const Progress done = enter(kCompute, on);
    if (it.what == Do::kRead) issued_ = done;
    for (const StepTrace::Input& input : inputs) {
      Storage& storage = storages_[input.storage];
      use(storage.block, kCompute, done);
      if (!input.written) continue;
      storage.ready = done;
      storage.has_copy = false;
    }
    for (uint32_t b = it.first_block; b < it.first_block + it.blocks; ++b) {
      take(b, kCompute, done);
      if (s_.blocks[b].storage != Schedule::kScratch) {
        storages_[s_.blocks[b].storage].has_copy = false;
      }
    }
  }

  const StepTrace& trace_;
  const Schedule& s_;
  std::array<Progress, 3> queues_{};
  Progress issued_{};            // done before anything else is issued
  std::vector<Progress> used_;   // by block: its last entry in each queue
  std::vector<Progress> known_;  // by block: what its first user waits for
  std::vector<Storage> storages_;
};

// Blocks that lie at one place: those that take over another's space, and the first and the
// last one of a storage that is there before and after the step.
std::vector<std::vector<uint32_t>> in_one_place(const Schedule& schedule, size_t storages) {
  std::vector<uint32_t> item_of = taken_over(schedule);
  std::vector<std::vector<uint32_t>> items;
  std::vector<uint32_t> initial(storages, Schedule::kScratch);  // a block
  for (uint32_t b = 0; b < schedule.blocks.size(); ++b) {
    const Block& block = schedule.blocks[b];
    const bool stays = block.storage != Schedule::kScratch && block.end == schedule.code.size();
    if (item_of[b] != Schedule::kScratch) {
      item_of[b] = item_of[item_of[b]];
    } else if (b >= schedule.initial_blocks && stays) {
      const uint32_t first = initial[block.storage];
      if (first != Schedule::kScratch && schedule.blocks[first].end <= block.begin) {
        item_of[b] = item_of[first];
      }
    }
    if (item_of[b] == Schedule::kScratch) {
      item_of[b] = static_cast<uint32_t>(items.size());
      items.emplace_back();
    }
    items[item_of[b]].push_back(b);
    if (b < schedule.initial_blocks) initial[block.storage] = b;
  }
  return items;
}

using Items = std::vector<std::vector<uint32_t>>;

Bytes size_of(const Schedule& schedule, const std::vector<uint32_t>& item) {
  return schedule.blocks[item.front()].size;
}

void put(Schedule& schedule, const std::vector<uint32_t>& item, Offset at) {
  for (const uint32_t b : item) schedule.blocks[b].at = at;
  schedule.peak = std::max(schedule.peak, at + size_of(schedule, item) - Offset(0));
}

// Each item at the lowest place that no conflicting one has, the largest first.
void first_fit(Schedule& schedule, const Items& items, const DataWaits& waits) {
  const auto conflict = [&](const std::vector<uint32_t>& x, const std::vector<uint32_t>& y) {
    return std::any_of(x.begin(), x.end(), [&](uint32_t a) {
      return std::any_of(y.begin(), y.end(), [&](uint32_t b) {
        return !waits.waits_anyway(a, b) && !waits.waits_anyway(b, a);
      });
    });
  };
  std::vector<std::pair<Offset, Offset>> taken;
  for (size_t k = 0; k < items.size(); ++k) {
    taken.clear();
    for (size_t j = 0; j < k; ++j) {
      if (!conflict(items[j], items[k])) continue;
      const Offset at = schedule.blocks[items[j].front()].at;
      taken.emplace_back(at, at + size_of(schedule, items[j]));
    }
    std::sort(taken.begin(), taken.end());
    Offset at(0);
    for (const auto& [begin, end] : taken) {
      if (begin - at >= size_of(schedule, items[k])) break;
      at = std::max(at, end);
    }
    put(schedule, items[k], at);
  }
}

Schedule placed_anew(const StepTrace& trace, const PlanLimits& limits, const Schedule& old,
                     bool share) {
  const size_t storages = trace.storages.size() + old.foreign.size();
  Schedule result = without_moves(old, storages);
  Items items = in_one_place(result, storages);
  std::stable_sort(items.begin(), items.end(), [&](const auto& a, const auto& b) {
    return size_of(result, a) > size_of(result, b);
  });
  result.peak = Bytes(0);
  result.placed = true;
  if (share) {
    first_fit(result, items, DataWaits(trace, result));
  } else {
    for (const auto& item : items) put(result, item, Offset(0) + result.peak);
  }
  PlanLimits ample = limits;
  ample.space = result.peak;
  result.time = simulate(trace, ample, result).time;
  return result;
}

}  // namespace

Schedule parallel_safe(const StepTrace& trace, const PlanLimits& limits,
                       const Schedule& schedule) {
  Schedule result = placed_anew(trace, limits, schedule, true);
  result.method += ", laid out so that no stream waits for bytes";
  return result;
}

Schedule side_by_side(const StepTrace& trace, const PlanLimits& limits,
                      const Schedule& schedule) {
  return placed_anew(trace, limits, schedule, false);
}

}  // namespace tidemark::planner
