// A kernel as it is executed: its instructions, decoded once.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/ptx/types.h"

namespace tidemark::ptx {

struct Step;
using Execute = void (*)(const Step&);

// How the warp handles an instruction; all but kPlain are the warp's own.
enum class Flow : uint8_t { kPlain, kBranch, kExit, kBlockBarrier, kWarpBarrier };

// Which lanes must be at the instruction together; they wait for each other.
enum class Together : uint8_t {
  kAlone,    // each lane for itself
  kNamed,    // those of the mask that is the last operand
  kAligned,  // all lanes of the warp
};

// How an instruction treats an operand that has no value.
enum class Undefined : uint8_t {
  kIsWrong,
  kIsCopied,    // the result has no value either
  kIsShuffled,  // the first operand's goes to other lanes; the instruction notes where
};

// What a launch does, for all threads.
struct Counts {
  int64_t read = 0, written = 0;     // bytes of global memory that threads ask for
  int64_t flops = 0;                 // floating-point operations; a fused one counts as two
  int64_t tensor_flops = 0;          // those of tensor cores, which `flops` leaves out
  std::vector<int64_t> of_blocks{};  // both together, of each block, launch after launch

  Counts& operator+=(const Counts& more) {
    read += more.read;
    written += more.written;
    flops += more.flops;
    tensor_flops += more.tensor_flops;
    of_blocks.insert(of_blocks.end(), more.of_blocks.begin(), more.of_blocks.end());
    return *this;
  }
};

struct Instruction {
  static constexpr int kMaxOutputs = 4;
  static constexpr int kMaxInputs = 12;

  Execute execute = nullptr;
  Flow flow = Flow::kPlain;
  Together together = Together::kAlone;
  Undefined undefined = Undefined::kIsWrong;
  Type type;        // the last of the suffixes
  Type other_type;  // the suffix before it: cvt converts to it, mma multiplies it
  Space space = Space::kGeneric;
  uint8_t outputs = 0;
  uint8_t inputs = 0;
  uint8_t vector = 1;   // elements of a load or store
  int8_t compare = -1;  // a Modifier, if it compares
  bool guard_negated = false;
  int guard = -1;             // predicate register, if any
  int target = -1;            // of a branch
  int line = 0;               // in the PTX
  int flops = 0;              // of one lane
  int64_t offset = 0;         // [register + offset]
  int64_t second_offset = 0;  // of the address that a copy reads
  Modifiers modifiers;
  std::array<int, kMaxOutputs> out{};  // registers
  std::array<int, kMaxInputs> in{};    // registers; constants are registers too

  bool has(Modifier m) const { return modifiers[static_cast<size_t>(m)]; }
};

// Registers that the hardware sets.
enum class Special : uint8_t {
  kThreadX,
  kThreadY,
  kThreadZ,
  kBlockSizeX,
  kBlockSizeY,
  kBlockSizeZ,
  kBlockX,
  kBlockY,
  kBlockZ,
  kGridX,
  kGridY,
  kGridZ,
  kLane,
  kWarp,
  kLanesBelow,
};

// Addresses [begin, begin + bytes) of global memory.
struct GlobalRange {
  uint64_t begin = 0;
  int64_t bytes = 0;
  bool writable = false;
  std::string name;
};

struct Variable {
  std::string name;
  int64_t offset = 0;
  int64_t bytes = 0;
  int64_t element = 1;  // bytes of one element
  int64_t align = 1;
};

struct Kernel {
  std::string name;  // mangled
  std::string file;
  std::vector<Variable> parameters;
  int64_t parameter_bytes = 0;
  int64_t shared_bytes = 0;
  int64_t local_bytes = 0;  // of one thread
  int max_threads = 1024;   // .maxntid
  int shared_granule = 4;   // bytes of the narrowest access that may be to shared memory
  int registers = 0;        // with those that hold constants
  std::vector<Instruction> code;
  std::vector<std::string> text;     // of each instruction, for messages
  std::vector<GlobalRange> globals;  // the module's variables that the kernel names
  std::vector<std::pair<int, uint64_t>> constants;  // register, value
  std::vector<std::pair<int, Special>> specials;
};

}  // namespace tidemark::ptx
