#include <setjmp.h>
#include <ucontext.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

#include <cuda_runtime.h>
#include "runtime/core/errors.h"
#include "runtime/device/cuda/check.h"

dim3 blockIdx, blockDim, threadIdx;

namespace {

// A context starts on its stack with setcontext(). Later switches are jumps, which make no
// system calls.
struct Fiber {
  static constexpr size_t kStack = 128 << 10;
  ucontext_t context;
  jmp_buf place;
  bool begun = false;
  std::unique_ptr<char[]> stack = std::make_unique<char[]>(kStack);
  unsigned thread = 0;
};

// Runs the threads of one block at a time. A fiber runs threads until one of them waits at a
// barrier; then another fiber takes the next threads.
class Block {
 public:
  void run(const std::function<void()>& kernel) {
    kernel_ = &kernel;
    next_ = 0;
    while (next_ < blockDim.x) resume(idle());
    for (bool forwards = true; !waiting_.empty(); forwards = !forwards) {
      if (waiting_.size() != blockDim.x) {
        std::fprintf(stderr, "%zu of %u threads of a block are at a barrier\n", waiting_.size(),
                     blockDim.x);
        std::abort();
      }
      go_on_.swap(waiting_);
      if (!forwards) std::reverse(go_on_.begin(), go_on_.end());
      for (Fiber* fiber : go_on_) resume(fiber);
      go_on_.clear();
    }
  }

  void wait() {
    waiting_.push_back(running_);
    leave();
  }

 private:
  static void enter();

  Fiber* idle() {
    if (idle_.empty()) {
      fibers_.push_back(std::make_unique<Fiber>());
      Fiber* fiber = fibers_.back().get();
      getcontext(&fiber->context);
      fiber->context.uc_stack.ss_sp = fiber->stack.get();
      fiber->context.uc_stack.ss_size = Fiber::kStack;
      makecontext(&fiber->context, enter, 0);
      idle_.push_back(fiber);
    }
    Fiber* fiber = idle_.back();
    idle_.pop_back();
    return fiber;
  }

  void resume(Fiber* fiber) {
    running_ = fiber;
    threadIdx.x = fiber->thread;
    if (_setjmp(scheduler_) != 0) return;
    if (fiber->begun) _longjmp(fiber->place, 1);
    fiber->begun = true;
    setcontext(&fiber->context);
  }
  void leave() {
    if (_setjmp(running_->place) == 0) _longjmp(scheduler_, 1);
  }

  const std::function<void()>* kernel_ = nullptr;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_, waiting_, go_on_;
  Fiber* running_ = nullptr;
  jmp_buf scheduler_;
  unsigned next_ = 0;
};

Block& block() {
  static Block& instance = *new Block;
  return instance;
}

void Block::enter() {
  Block& mine = block();
  while (true) {
    while (mine.next_ < blockDim.x) {
      threadIdx.x = mine.running_->thread = mine.next_++;
      (*mine.kernel_)();
    }
    mine.idle_.push_back(mine.running_);
    mine.leave();
  }
}

}  // namespace

std::multimap<std::string, size_t>& cuda_on_host_parameters() {
  static auto& all = *new std::multimap<std::string, size_t>;
  return all;
}

void __syncthreads() { block().wait(); }

float __shfl_xor_sync(unsigned, float value, int distance) {
  static float values[1024];
  values[threadIdx.x] = value;
  __syncthreads();
  value = values[threadIdx.x ^ static_cast<unsigned>(distance)];
  __syncthreads();
  return value;
}

void cuda_on_host_run(const cudaLaunchConfig_t& config, const std::function<void()>& kernel) {
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  blockDim = config.blockDim;
  for (blockIdx.x = 0; blockIdx.x < config.gridDim.x; ++blockIdx.x) block().run(kernel);
}

namespace tidemark {

void throw_cuda(cudaError_t, const char* call) { throw DeviceError(call); }

}  // namespace tidemark
