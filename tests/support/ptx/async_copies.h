// Copies from global to shared memory that threads have started with cp.async and not waited
// for. A GPU moves the bytes at any time between the two; here the wait moves them, and until
// then nobody may use the place that they go to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tests/support/ptx/kernel.h"
#include "tests/support/ptx/shared_memory.h"

namespace tidemark::ptx {

class AsyncCopies {
 public:
  struct Copy {
    const Instruction* instruction;  // for messages
    int64_t to;                      // a byte of shared memory
    const std::byte* from;           // in global memory; null if nothing is read
    int64_t bytes;
    int64_t read;  // of them; the others become zeros
  };

  AsyncCopies(SharedMemory& shared, int threads);

  // REQUIRES: the thread may read the source, and has been noted as the destination's writer.
  void start(int thread, const Copy& copy);
  // Makes a group of the copies that the thread has started since its last one.
  void commit(int thread);
  // Finishes the thread's groups but for the last `left`, and nothing that is in no group.
  void wait(int thread, int64_t left);

  struct Unfinished {
    int thread;
    Copy copy;
  };
  // One that its thread has not waited for, if there is any.
  std::optional<Unfinished> unfinished() const;

 private:
  struct Started {
    Copy copy;
    int64_t group;
  };
  struct Thread {
    std::vector<Started> started;
    int64_t groups = 0;
  };

  void finish(int thread, const Copy& copy);

  SharedMemory& shared_;
  std::vector<Thread> threads_;
};

}  // namespace tidemark::ptx
