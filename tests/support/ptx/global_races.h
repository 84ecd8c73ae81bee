// Races in global memory, within a block and between blocks. It is watched only where a
// launch's memory asks for it (GlobalMemory::watch_races()).
//
// Two accesses to the same byte, one of them a write, must be ordered. Within a block: made by
// one thread, or with a barrier of the block between them. Between blocks: by a mark, which is
// a volatile or relaxed store. A mark publishes what its thread did before, and what its block
// did before its last barrier, provided that the thread has executed a fence since then. A
// thread acquires it by a volatile or relaxed load of the same address and a fence after the
// load; the other threads of its block do so by a barrier after that fence.
//
// Marks, and atomic operations, are not watched themselves. What a block acquires, it does not
// publish on. As blocks run one after the other, every mark of an earlier block is there when
// it is read: that the reader waits for it is not checked.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace tidemark::ptx {

class GlobalRaces {
 public:
  explicit GlobalRaces(int threads) : fenced_(static_cast<size_t>(threads)) {}

  void begin_block(int64_t block);
  // All threads of the block have passed a barrier.
  void barrier() { ++epoch_; }
  void fence(int thread);

  struct Access {
    int64_t block = -1;  // -1: none
    uint32_t epoch = 0;  // number of barriers and blocks begun before it
    int thread = -1;
  };
  // Notes an access and returns another that races with it, if there is one.
  std::optional<Access> read(uint64_t address, int64_t bytes, int thread);
  std::optional<Access> write(uint64_t address, int64_t bytes, int thread);

  void store_mark(uint64_t address, int thread);
  void load_mark(uint64_t address, int thread);

 private:
  struct Byte {
    Access writer;
    std::vector<Access> readers;  // since it was written
  };
  struct Acquired {
    Access mark;
    Access by;  // when its thread executed the fence
  };

  Access now(int thread) const { return {block_, epoch_, thread}; }
  bool ordered(const Access& before, int thread) const;

  int64_t block_ = -1;
  uint32_t epoch_ = 0;
  std::vector<uint32_t> fenced_;  // by thread: the epoch of its last fence
  std::unordered_map<uint64_t, Byte> bytes_;
  std::unordered_map<uint64_t, Access> marks_;  // by address: the store
  std::vector<Acquired> loaded_, acquired_;     // by this block: before the fence, and after it
};

}  // namespace tidemark::ptx
