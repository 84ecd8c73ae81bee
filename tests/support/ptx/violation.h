// The errors that a kernel can make, each with the place where it was made.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace tidemark::ptx {

// The rule that was broken.
enum class Check : uint8_t {
  kRace,             // two threads use the same bytes of shared memory, one of them writes, and
                     // neither a barrier of the block nor __syncwarp() lies between
  kUnwrittenShared,  // shared memory is read that no thread of the block has written
  kCopy,             // the bytes of an asynchronous copy are used, or its thread ends, before
                     // the thread has waited for it; or it is to read more than it copies
  kSharedBounds,
  kGlobalRace,    // as kRace in global memory, or between blocks (global_races.h)
  kGlobalBounds,  // outside every live allocation
  kReadOnly,      // a write to an allocation that may only be read
  kLocalBounds,
  kParamBounds,
  kMisaligned,
  kDiverged,    // lanes are missing at an instruction that needs them
  kBarrier,     // threads wait at a barrier that others will never reach
  kUndefined,   // a register's value is used before there is one
  kParameters,  // the arguments of a launch do not fit the declared parameters
  kLaunchShape,
  kDivision,  // of integers, by zero
  kTrap,
  kEndless,  // the last
};
const char* name_of(Check check);

class Violation : public std::runtime_error {
 public:
  Violation(Check check, const std::string& what) : std::runtime_error(what), check_(check) {}
  Check check() const { return check_; }

 private:
  Check check_;
};

// The PTX holds something that the interpreter does not know.
class NotCovered : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace tidemark::ptx
