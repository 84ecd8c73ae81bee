// Runs one block of threads at a time. Owns the block's warps and its shared, local and
// parameter memory, and checks every access to memory.
//
// Generic addresses: those of global memory are the host's; the other spaces are windows at
// addresses that the host does not have.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tests/support/ptx/async_copies.h"
#include "tests/support/ptx/global_memory.h"
#include "tests/support/ptx/global_races.h"
#include "tests/support/ptx/kernel.h"
#include "tests/support/ptx/shared_memory.h"
#include "tests/support/ptx/warp.h"

namespace tidemark::ptx {

// A kernel's name as in C++; `mangled` itself if it is no such name.
std::string readable(const std::string& mangled);

struct Extents {
  uint32_t x = 1, y = 1, z = 1;
  int64_t count() const { return int64_t{x} * y * z; }
};

class Block {
 public:
  Block(const Kernel& kernel, const Extents& grid, const Extents& threads,
        std::vector<std::byte> parameters, const GlobalMemory& global);

  // Runs block number `index` of the grid to its end. Throws Violation.
  void run(int64_t index);

  // The host's address of `bytes` bytes at `address`, for `lane` of the step. Throws Violation
  // if the lane may not access them.
  std::byte* access(const Step& step, int lane, Space space, uint64_t address, int64_t bytes,
                    bool write);
  // Starts a copy of `bytes` bytes from global to shared memory: `read` of them, then zeros.
  // Throws Violation if the lane may not do that now.
  void start_copy(const Step& step, int lane, uint64_t to, uint64_t from, int64_t bytes,
                  int64_t read);
  // A generic address from one of a space, and back.
  static uint64_t to_generic(Space space, uint64_t address);
  static uint64_t from_generic(Space space, uint64_t address);

  uint64_t special(Special special, int warp, int lane) const;
  SharedMemory& shared() { return shared_; }
  AsyncCopies& copies() { return copies_; }
  // The thread has executed a fence that other blocks respect.
  void fence(int thread);
  void count_step();
  // Adds an instruction that these lanes execute to counts().
  void count(const Instruction& instruction, LaneMask active);
  const Counts& counts() const { return counts_; }  // of all blocks so far
  [[noreturn]] void fail(Check check, const Instruction& instruction, int thread,
                         const std::string& what) const;

 private:
  std::byte* access_shared(const Step& step, int lane, uint64_t address, int64_t bytes,
                           bool write);
  std::byte* access_global(const Step& step, int lane, uint64_t address, int64_t bytes,
                           bool write);
  void watch_global(const Step& step, int lane, uint64_t address, int64_t bytes, bool write);
  void require_finished_copies() const;

  const Kernel& kernel_;
  const Extents grid_, threads_;
  const std::vector<std::byte> parameters_;
  const GlobalMemory& global_;
  std::optional<GlobalRaces> races_;  // if `global` asks for it
  SharedMemory shared_;
  AsyncCopies copies_;
  std::vector<std::byte> local_;
  std::vector<std::unique_ptr<Warp>> warps_;
  int64_t index_ = 0;
  int64_t steps_ = 0;  // of this block
  Counts counts_;
};

}  // namespace tidemark::ptx
