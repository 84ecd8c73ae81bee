// The threads of a warp: their registers, and where each of them is.
//
// Lanes at the same instruction execute it together. Those with the lowest program counter go
// first, so lanes that parted meet again where their paths do. At a barrier, a shuffle and the
// like, lanes wait for those that are needed; that some of them never come is a violation.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "tests/support/ptx/kernel.h"
#include "tests/support/ptx/step.h"

namespace tidemark::ptx {

class Warp {
 public:
  Warp(Block& block, const Kernel& kernel, int number, int threads_in_block);

  // All threads start anew, in the current block.
  void begin();
  // Runs until every lane has exited or waits at the block's barrier.
  void run();
  // Lets those that wait go on.
  void release() { waiting_ = 0; }

  LaneMask waiting() const { return waiting_; }
  LaneMask exited() const { return exited_; }

 private:
  // Lanes that are at one instruction.
  struct Group {
    LaneMask lanes = 0;
    int pc = 0;
    int limit = 0;  // where the next other group is
  };

  Group lowest(LaneMask ready) const;
  void run_group(Group group);
  // False: the group is done, its lanes' places are noted.
  bool advance(Group& group, const Instruction& instruction);
  bool branch(Group& group, const Instruction& instruction, LaneMask taken);
  bool gather(Group& group, const Instruction& instruction, LaneMask& active);
  void execute(const Instruction& instruction, LaneMask active);
  LaneMask needed_lanes(const Instruction& instruction, LaneMask active) const;
  void check_defined(const Instruction& instruction, LaneMask active);
  LaneMask guarded(const Instruction& instruction, LaneMask lanes) const;
  void place(LaneMask lanes, int pc);
  Step step(const Instruction& instruction, LaneMask mask) const;

  Block& block_;
  const Kernel& kernel_;
  int number_;
  LaneMask lanes_;  // the last warp of a block may have fewer than 32
  LaneMask exited_ = 0;
  LaneMask waiting_ = 0;    // at the block's barrier
  LaneMask gathering_ = 0;  // for other lanes of the warp
  std::array<int, kLanes> pc_{};
  std::unique_ptr<Lanes[]> registers_;
  mutable std::vector<LaneMask> defined_;  // of each register
};

}  // namespace tidemark::ptx
