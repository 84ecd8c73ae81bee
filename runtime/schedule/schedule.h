// The actions to take in a step: which operators run when, which storages leave the arena and
// come back, and where each block lies. The only format for plans: planners make it, the
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
// Time is a position in `code`. A block is taken by instruction `begin` and may be reused once
// instruction `end - 1` is done: [begin, end). That instruction is the one that ends the block,
// or a later one by which a copy of the block should be done. For a move it is the move itself:
// the next user of the old space waits for the copy. Instructions are carried out in order;
// copies run beside later instructions.
//
// An operator that runs in place (`overwrites`) writes its first output over an input that the
// program has dropped by then. The input's block ends where the output's begins, at the same
// offset:
//
//   trace      5 relu_grad s8 s3 -> s9, then s8 is dropped
//   code       7 run op 5, overwrites s8      block 9: s9, where s8 was; ends the block of s8
//
// The operator waits until the program has dropped the input.
//
// A call that has variants (step_trace.h) may run as one of them. A later recomputation of its
// outputs runs the call itself, and what the call reads stays obtainable as long as the program
// holds it, so that a schedule can be left anywhere.
//
// Storages are numbered as in the trace. Storages that exist but are not used in it (`foreign`)
// are numbered after the trace's.
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
  // Marks a block as a workspace, or as an unused output of a recomputation.
  static constexpr uint32_t kScratch = std::numeric_limits<uint32_t>::max();

  enum class Do : uint8_t {
    kRun,       // an operator: takes a block per output, in order, then one for its workspace
    kUpload,    // takes a block
    kRead,      // the program waits for a value: everything before has been issued
    kFree,      // the storage's bytes are no longer needed: ends its block, or its copy
    kEvict,     // ends its block and its copy: it will be recomputed
    kCopyOut,   // to a tier; its block stays
    kOffload,   // ends its block; copies it out first if no valid copy exists
    kCopyIn,    // takes a block, filled from the copy, which stays valid until the next write
    kDropCopy,  // for a storage without a block: it will be recomputed
    kMove,      // ends its block and takes another
  };
  struct Instruction {
    Do what = Do::kRun;
    bool again = false;    // for kRun: a recomputation
    uint32_t subject = 0;  // kRun, kUpload, kRead: an operator of the trace; else: a storage
    uint32_t first_block = 0;  // takes blocks[first_block, first_block + blocks)
    uint32_t blocks = 0;
    // For kRun, not again: the input, one of the operator's `may_overwrite`, whose space the
    // first output takes. kScratch: none.
    uint32_t overwrites = kScratch;
    // For kRun, not again: what runs instead of the call, its variants[variant - 1]; 0: the
    // call itself.
    uint32_t variant = 0;
    bool in_place() const { return overwrites != kScratch; }
    bool operator==(const Instruction&) const = default;
  };
  struct Block {
    uint32_t storage = kScratch;
    Bytes size{0};
    uint32_t begin = 0;  // 0 for an initial block
    uint32_t end = 0;    // code.size(): exists at the step's end
    Offset at{};         // if the schedule is placed
    bool operator==(const Block&) const = default;
  };

  std::vector<Instruction> code;
  std::vector<Block> blocks;    // by `begin`, in the order in which they are taken
  uint32_t initial_blocks = 0;  // blocks at the front that exist before the step
  // Sizes of storages that exist before the step and are not used in it. Each has an initial
  // block or stays on a tier. It may be moved, and may be freed if the program drops it in the
  // step.
  std::vector<Bytes> foreign;
  // Every block has an offset. Off: blocks lie anywhere, and are compacted when space is short.
  bool placed = false;
  // Storages that live through the step have no blocks here: they lie together at the arena's
  // lower end, and offsets count from their end. Nothing is then released.
  bool residents_apart = false;

  Bytes peak{0};  // highest end of a block, or, if not placed, most bytes at once
  // Lower bound of the peak: in any order, where nothing is released; else the load, the most
  // bytes at once, which is a bound for these releases in this order alone.
  Bytes peak_bound{0};
  Bytes moved{0};  // by kMove, and before the next step
  // Total shortfall: the sum of its increases over the step; released at run time.
  Bytes shortfall{0};
  Nanos time{0};        // expected
  Nanos recomputed{0};  // part of `time`
  // Expected in ample space, and lower bounds for schedules in the same order of operators and
  // in any (planner/bounds/). 0: not computed.
  Nanos ample_time{0};
  Nanos time_bound{0};
  Nanos any_order_bound{0};
  std::string method{};  // the producer, for people

  bool operator==(const Schedule&) const = default;
};

// Whether its subject is an operator of the trace, not a storage.
inline bool names_op(const Schedule::Instruction& instruction) {
  using Do = Schedule::Do;
  return instruction.what == Do::kRun || instruction.what == Do::kUpload ||
         instruction.what == Do::kRead;
}
// Whether it runs a program's operator for the first time.
inline bool is_program_op(const Schedule::Instruction& instruction) {
  return names_op(instruction) && !instruction.again;
}

// Whether each operator is where the program issues it.
bool in_program_order(const Schedule& schedule);
// Per block: the block whose space it takes over because its operator runs in place; kScratch:
// none. REQUIRES: the validator finds nothing in its references.
std::vector<uint32_t> taken_over(const Schedule& schedule);
// Most bytes in blocks at once: no layout has a lower peak.
Bytes max_resident(const Schedule& schedule);
// Whether any storage leaves the arena before the program drops it.
bool releases(const Schedule& schedule);

}  // namespace tidemark
