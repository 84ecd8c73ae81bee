#include "tests/support/ptx/warp.h"

#include <algorithm>
#include <limits>
#include <string>

#include "tests/support/ptx/block.h"

namespace tidemark::ptx {
namespace {

constexpr int kNowhere = std::numeric_limits<int>::max();

}  // namespace

Warp::Warp(Block& block, const Kernel& kernel, int number, int threads_in_block)
    : block_(block),
      kernel_(kernel),
      number_(number),
      lanes_(threads_in_block - number * kLanes >= kLanes
                 ? kAllLanes
                 : (LaneMask{1} << (threads_in_block - number * kLanes)) - 1),
      registers_(std::make_unique<Lanes[]>(static_cast<size_t>(kernel.registers))) {
  for (const auto& [r, value] : kernel.constants) {
    std::fill_n(registers_[static_cast<size_t>(r)], kLanes, value);
  }
}

void Warp::begin() {
  exited_ = waiting_ = gathering_ = 0;
  pc_.fill(0);
  defined_.assign(static_cast<size_t>(kernel_.registers), 0);
  for (const auto& [r, value] : kernel_.constants) defined_[static_cast<size_t>(r)] = kAllLanes;
  for (const auto& [r, special] : kernel_.specials) {
    defined_[static_cast<size_t>(r)] = kAllLanes;
    for (int lane = 0; lane < kLanes; ++lane) {
      registers_[static_cast<size_t>(r)][lane] = block_.special(special, number_, lane);
    }
  }
}

void Warp::run() {
  while (const LaneMask ready = lanes_ & ~(exited_ | waiting_ | gathering_)) {
    run_group(lowest(ready));
  }
  if (gathering_ != 0) {
    const int lane = first_lane(gathering_);
    const auto pc = static_cast<size_t>(pc_[static_cast<size_t>(lane)]);
    step(kernel_.code[pc], gathering_)
        .fail(Check::kDiverged, lane, "other lanes that it needs never come here");
  }
}

Warp::Group Warp::lowest(LaneMask ready) const {
  Group group{0, kNowhere, kNowhere};
  for_lanes(ready, [&](int lane) {
    const int pc = pc_[static_cast<size_t>(lane)];
    if (pc < group.pc) {
      group.limit = group.pc;
      group.pc = pc;
      group.lanes = 0;
    }
    if (pc == group.pc) {
      group.lanes |= LaneMask{1} << lane;
    } else {
      group.limit = std::min(group.limit, pc);
    }
  });
  return group;
}

void Warp::run_group(Group group) {
  while (group.pc < group.limit) {
    if (group.pc == static_cast<int>(kernel_.code.size())) {
      exited_ |= group.lanes;
      return;
    }
    block_.count_step();
    if (!advance(group, kernel_.code[static_cast<size_t>(group.pc)])) return;
  }
  place(group.lanes, group.pc);
}

bool Warp::advance(Group& group, const Instruction& instruction) {
  LaneMask active = guarded(instruction, group.lanes);
  if (instruction.flow == Flow::kBranch) return branch(group, instruction, active);
  if (instruction.flow == Flow::kExit) {
    exited_ |= active;
    group.lanes &= ~active;
  } else if (active != 0) {
    if (instruction.together != Together::kAlone && !gather(group, instruction, active)) {
      return false;
    }
    if (instruction.flow == Flow::kBlockBarrier) {
      waiting_ |= active;
      place(group.lanes, group.pc + 1);
      return false;
    }
    execute(instruction, active);
  }
  ++group.pc;
  return group.lanes != 0;
}

bool Warp::branch(Group& group, const Instruction& instruction, LaneMask taken) {
  if (taken == group.lanes) {
    group.pc = instruction.target;
    return true;
  }
  if (taken == 0) {
    ++group.pc;
    return true;
  }
  place(taken, instruction.target);
  place(group.lanes & ~taken, group.pc + 1);
  return false;
}

// Waits until all lanes that the instruction needs are there; then they are all `active`.
bool Warp::gather(Group& group, const Instruction& instruction, LaneMask& active) {
  const LaneMask needed = needed_lanes(instruction, active);
  LaneMask come = active;
  for_lanes(gathering_, [&](int lane) {
    if (pc_[static_cast<size_t>(lane)] == group.pc) come |= LaneMask{1} << lane;
  });
  if (const LaneMask gone = needed & ~come & (exited_ | ~lanes_)) {
    step(instruction, active)
        .fail(Check::kDiverged, first_lane(active),
              "needs lane " + std::to_string(first_lane(gone)) + ", which has exited");
  }
  if ((needed & ~come) != 0) {
    gathering_ |= active;
    place(active, group.pc);
    place(group.lanes & ~active, group.pc + 1);
    return false;
  }
  gathering_ &= ~needed;
  group.lanes |= needed;
  active = needed;
  return true;
}

LaneMask Warp::needed_lanes(const Instruction& instruction, LaneMask active) const {
  if (instruction.flow == Flow::kBlockBarrier) return lanes_ & ~exited_;
  if (instruction.together == Together::kAligned) return kAllLanes;
  const int mask_register = instruction.in[static_cast<size_t>(instruction.inputs) - 1];
  const Lanes& masks = registers_[static_cast<size_t>(mask_register)];
  const Step here = step(instruction, active);
  const auto needed = static_cast<LaneMask>(masks[first_lane(active)]);
  for_lanes(active, [&](int lane) {
    if (static_cast<LaneMask>(masks[lane]) != needed) {
      here.fail(Check::kDiverged, lane, "its mask of lanes is not that of other lanes");
    }
    if ((needed >> lane & 1) == 0) here.fail(Check::kDiverged, lane, "is not in its own mask");
  });
  return needed;
}

void Warp::execute(const Instruction& instruction, LaneMask active) {
  check_defined(instruction, active);
  block_.count(instruction, active);
  if (instruction.flow == Flow::kWarpBarrier) {
    block_.shared().warp_barrier(number_, active);
  } else {
    instruction.execute(step(instruction, active));
  }
}

void Warp::check_defined(const Instruction& instruction, LaneMask active) {
  const bool shuffles = instruction.undefined == Undefined::kIsShuffled;
  LaneMask undefined = 0;
  for (size_t i = shuffles ? 1 : 0; i < instruction.inputs; ++i) {
    undefined |= ~defined_[static_cast<size_t>(instruction.in[i])];
  }
  undefined &= active;
  if (undefined != 0 && instruction.undefined != Undefined::kIsCopied) {
    step(instruction, active)
        .fail(Check::kUndefined, first_lane(undefined), "an operand has no value yet");
  }
  if (shuffles) return;
  for (size_t i = 0; i < instruction.outputs; ++i) {
    LaneMask& defined = defined_[static_cast<size_t>(instruction.out[i])];
    defined = (defined & ~active) | (active & ~undefined);
  }
}

LaneMask Warp::guarded(const Instruction& instruction, LaneMask lanes) const {
  if (instruction.guard < 0) return lanes;
  const auto guard = static_cast<size_t>(instruction.guard);
  if (const LaneMask undefined = lanes & ~defined_[guard]) {
    step(instruction, lanes)
        .fail(Check::kUndefined, first_lane(undefined), "its predicate has no value yet");
  }
  LaneMask set = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    set |= static_cast<LaneMask>(registers_[guard][lane] & 1) << lane;
  }
  return lanes & (instruction.guard_negated ? ~set : set);
}

void Warp::place(LaneMask lanes, int pc) {
  for_lanes(lanes, [&](int lane) { pc_[static_cast<size_t>(lane)] = pc; });
}

Step Warp::step(const Instruction& instruction, LaneMask mask) const {
  return {block_, registers_.get(), defined_.data(),  instruction,
          mask,   number_,          lanes_ & ~exited_};
}

}  // namespace tidemark::ptx
