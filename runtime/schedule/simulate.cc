#include "runtime/schedule/simulate.h"

#include <algorithm>

#include "runtime/schedule/free_bytes.h"
#include "runtime/schedule/link.h"
#include "runtime/schedule/storage_state.h"

namespace tidemark {
namespace {

using Do = Schedule::Do;
using Instruction = Schedule::Instruction;
using Block = Schedule::Block;

class Simulator {
 public:
  Simulator(const StepTrace& trace, const PlanLimits& limits, const Schedule& schedule)
      : trace_(trace),
        limits_(limits),
        s_(schedule),
        count_(limits.space),
        link_(limits),
        storages_(trace.storages.size() + schedule.foreign.size()),
        block_free_(schedule.blocks.size()) {}

  ScheduleCost run() {
    begin();
    for (const Instruction& instruction : s_.code) {
      apply(instruction);
      cost_.tier_peak = std::max(cost_.tier_peak, tier_);
    }
    for (const State& state : storages_) {
      if (state.offloaded()) wait_until(state.copy_ready);
    }
    cost_.time = compute_;
    return cost_;
  }

 private:
  struct State : StorageState {
    uint32_t block = 0;   // if it is resident
    Nanos ready{0};       // its bytes are written, by a call or by a copy
    Nanos copy_ready{0};  // its copy is out
  };

  Bytes size(uint32_t storage) const {
    return storage < trace_.storages.size() ? trace_.storages[storage].size
                                            : s_.foreign[storage - trace_.storages.size()];
  }

  void begin() {
    for (uint32_t b = 0; b < s_.initial_blocks; ++b) {
      enter(s_.blocks[b].storage, b, Nanos(0));
      take(b);
    }
    for (uint32_t s = 0; s < trace_.storages.size(); ++s) {
      const StepTrace::Storage& storage = trace_.storages[s];
      const bool apart = s_.residents_apart && storage.at_end;
      if (!storage.at_start || apart || storages_[s].resident()) continue;
      storages_[s].take_block();
      storages_[s].copy_out();
      storages_[s].leave(Residence::kOffloaded);
      tier_ += storage.size;
    }
    cost_.tier_peak = tier_;
  }

  void apply(const Instruction& it) {
    if (names_op(it)) return run_op(it);
    State& state = storages_[it.subject];
    switch (it.what) {
      case Do::kCopyOut: copy_out(it.subject); break;
      case Do::kOffload:
        copy_out(it.subject);
        leave(state, Residence::kOffloaded);
        break;
      case Do::kFree:
        drop_copy(it.subject);
        if (state.resident()) {
          leave(state, Residence::kDead);
        } else {
          state.die();
        }
        break;
      case Do::kEvict:
        drop_copy(it.subject);
        leave(state, Residence::kEvicted);
        break;
      case Do::kDropCopy: drop_copy(it.subject); break;
      case Do::kCopyIn: {
        const Nanos start = std::max({take(it.first_block), state.copy_ready, issued_});
        copy_in(it.subject, it.first_block, start);
        cost_.copied += limits_.in_time(size(it.subject));
        break;
      }
      case Do::kMove: move(it); break;
      default: break;
    }
  }

  void run_op(const Instruction& it) {
    const StepTrace::Op& op = trace_.ops[it.subject];
    if (it.what == Do::kUpload) {
      for (uint32_t b = it.first_block; b < it.first_block + it.blocks; ++b) {
        const Nanos start = std::max(take(b), compute_);
        if (s_.blocks[b].storage != Schedule::kScratch) copy_in(s_.blocks[b].storage, b, start);
      }
      return;
    }
    const StepTrace::Implementation run = op.implementation(it.variant);
    for (const StepTrace::Input& input : run.inputs) {
      const State& state = storages_[input.storage];
      wait_until(state.ready);
      if (input.written && state.resident()) wait_until(block_free_[state.block]);
    }
    if (it.in_place()) {
      drop_copy(it.overwrites);
      leave(storages_[it.overwrites], Residence::kDead);
    }
    for (uint32_t b = it.first_block; b < it.first_block + it.blocks; ++b) wait_until(take(b));
    compute_ += run.cost;
    if (it.again) cost_.recomputed += run.cost;
    if (it.what == Do::kRead) issued_ = compute_;
    for (const StepTrace::Input& input : run.inputs) {
      State& state = storages_[input.storage];
      if (state.resident()) used(state.block, compute_);
      if (!input.written) continue;
      state.ready = compute_;
      drop_copy(input.storage);
    }
    for (uint32_t b = it.first_block; b < it.first_block + it.blocks; ++b) {
      used(b, compute_);
      const uint32_t storage = s_.blocks[b].storage;
      if (storage == Schedule::kScratch) {
        end(b);
      } else {
        enter(storage, b, compute_);
      }
    }
  }

  // Compute reads the old place and writes the new one; the two may share bytes. It waits for a
  // copy in. A copy out goes on, and the next user of the old place waits for it.
  void move(const Instruction& it) {
    State& state = storages_[it.subject];
    wait_until(state.ready);
    const uint32_t old = state.block;
    end(old);
    wait_until(take(it.first_block));
    compute_ += limits_.move_time(size(it.subject));
    state.block = it.first_block;
    state.ready = compute_;
    used(it.first_block, compute_);
    if (s_.placed) {
      places_.leave(s_.blocks[old].at, s_.blocks[old].size,
                    std::max(compute_, block_free_[old]));
    }
  }

  void copy_in(uint32_t storage, uint32_t block, Nanos start) {
    const Nanos ready = link_.in(size(storage), start);
    enter(storage, block, ready);
    used(block, ready);
  }

  void copy_out(uint32_t storage) {
    State& state = storages_[storage];
    if (state.has_copy()) return;
    cost_.copied += limits_.out_time(size(storage));
    state.copy_out();
    state.copy_ready = link_.out(size(storage), std::max(state.ready, issued_));
    tier_ += size(storage);
    used(state.block, state.copy_ready);
  }

  void drop_copy(uint32_t storage) {
    if (!storages_[storage].has_copy()) return;
    tier_ -= size(storage);
    storages_[storage].drop_copy();
  }
  void enter(uint32_t storage, uint32_t block, Nanos ready) {
    State& state = storages_[storage];
    state.take_block();
    state.block = block;
    state.ready = ready;
  }
  void leave(State& state, Residence next) {
    end(state.block);
    state.leave(next);
  }

  void wait_until(Nanos time) {
    if (time <= compute_) return;
    cost_.waited += time - compute_;
    compute_ = time;
  }

  // Takes the block. Returns when its bytes are free.
  Nanos take(uint32_t b) {
    const Block& block = s_.blocks[b];
    live_ += block.size;
    cost_.peak = std::max(cost_.peak, s_.placed ? block.at + block.size - Offset(0) : live_);
    return s_.placed ? places_.free_from(block.at, block.size) : count_.take(block.size);
  }
  void used(uint32_t b, Nanos until) { block_free_[b] = std::max(block_free_[b], until); }
  void end(uint32_t b) {
    const Block& block = s_.blocks[b];
    live_ -= block.size;
    if (s_.placed) {
      places_.leave(block.at, block.size, block_free_[b]);
    } else {
      count_.leave(block.size, block_free_[b]);
    }
  }

  const StepTrace& trace_;
  const PlanLimits& limits_;
  const Schedule& s_;
  simulator::FreePlaces places_;
  simulator::FreeCount count_;
  Link link_;
  std::vector<State> storages_;
  std::vector<Nanos> block_free_;  // when its last user so far is done
  Bytes live_{0}, tier_{0};
  Nanos compute_{0};
  Nanos issued_{0};  // nothing that is issued now starts before
  ScheduleCost cost_;
};

}  // namespace

ScheduleCost simulate(const StepTrace& trace, const PlanLimits& limits,
                      const Schedule& schedule) {
  return Simulator(trace, limits, schedule).run();
}

}  // namespace tidemark
