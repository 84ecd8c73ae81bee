// What is done about a step: which of its operators run when, which storages leave the arena
// and come back, and where each block lies. The only format for plans: planners write it, the
// validator checks it, the simulator prices it, the executor carries it out.
//
//   trace      0 conv -> s2     1 relu -> s3     2 conv_grad s2 s3 -> s4
//   code       0 run op 0       block 1: s2
//              1 run op 1       block 2: s3, block 3: workspace
//              2 evict s2                                  ends block 1
//              3 run op 0 again block 4: s2
//              4 run op 2       block 5: s4
//              5 free s3                                   ends block 2
//
// Time is a position in `code`. A block is taken by the instruction `begin` and may be taken by
// others once the instruction `end - 1` is done: [begin, end). That is the instruction that
// ends it, or a later one, by which a copy of it is expected to be done; of a move, that one:
// whoever takes the old place waits for a copy of it. Instructions are
// carried out in their order; copies go on beside what follows them.
//
// Storages are numbered as in the trace; those that are there without being used in it
// (`foreign`) come after the trace's.
//
// Threads: values, no state.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "runtime/core/units.h"
#include "runtime/schedule/step_trace.h"

namespace tidemark {

struct Schedule {
  // Of a block: a workspace, or an output of a call that runs again which nobody wants.
  static constexpr uint32_t kScratch = std::numeric_limits<uint32_t>::max();

  enum class Do : uint8_t {
    kRun,      // an operator: takes a block for each output, in their order, then its workspace
    kUpload,   // takes a block
    kRead,     // the program waits for a value: what comes before has been issued
    kFree,     // nobody wants the storage's bytes any more: ends its block, or its copy
    kEvict,    // ends its block, and its copy: it will be computed again
    kCopyOut,  // to a tier; its block stays
    kOffload,  // ends its block; copied out first where there is no valid copy
    kCopyIn,   // from its copy, which stays valid until the storage is written: takes a block
    kDropCopy,  // of a storage without a block: it will be computed again
    kMove,      // ends its block and takes another
  };
  struct Instruction {
    Do what = Do::kRun;
    bool again = false;    // of kRun: a recomputation
    uint32_t subject = 0;  // of kRun, kUpload, kRead: an operator of the trace; else a storage
    uint32_t first_block = 0;  // it takes blocks[first_block, first_block + blocks)
    uint32_t blocks = 0;
    bool operator==(const Instruction&) const = default;
  };
  struct Block {
    uint32_t storage = kScratch;
    Bytes size{0};
    uint32_t begin = 0;  // of an initial block: 0
    uint32_t end = 0;    // code.size(): it is there at the step's end
    Offset at{};         // if the schedule is placed
    bool operator==(const Block&) const = default;
  };

  std::vector<Instruction> code;
  std::vector<Block> blocks;    // by `begin`, in the order in which they are taken
  uint32_t initial_blocks = 0;  // the first so many are there before the step
  // Sizes of storages that are there before the step and are not used in it. Each has an
  // initial block, or stays on a tier. They may be moved, and freed, if the program lets go of
  // them in the step.
  std::vector<Bytes> foreign;
  // Each block has its place. Else blocks lie anywhere, and are compacted when space is short.
  bool placed = false;
  // What lives through the step has no blocks here: it lies together at the arena's lower end,
  // and offsets count from where that ends. Nothing is released then.
  bool residents_apart = false;

  Bytes peak{0};        // highest end of a block, or, if not placed, most bytes at once
  Bytes peak_bound{0};  // no schedule like it has less
  Bytes moved{0};       // by kMove, and to begin the next step
  // Bytes that are short, summed over the times in the step at which more are; they are
  // released when it runs.
  Bytes shortfall{0};
  Nanos time{0};         // expected
  Nanos recomputed{0};   // of it
  std::string method{};  // who made it, for people

  bool operator==(const Schedule&) const = default;
};

// Is its subject an operator of the trace, not a storage?
inline bool names_op(const Schedule::Instruction& instruction) {
  using Do = Schedule::Do;
  return instruction.what == Do::kRun || instruction.what == Do::kUpload ||
         instruction.what == Do::kRead;
}
// And run for the first time?
inline bool is_program_op(const Schedule::Instruction& instruction) {
  return names_op(instruction) && !instruction.again;
}

// Is each operator where the program issues it?
bool in_program_order(const Schedule& schedule);
// Most bytes in blocks at once: no layout has a lower peak.
Bytes max_resident(const Schedule& schedule);
// Does anything leave the arena before the program lets go of it?
bool releases(const Schedule& schedule);

}  // namespace tidemark
