// The OpenMP threads that compute on the CPU: how many there are, and that they come.
//
// A kernel is prepared for a number of threads. oneDNN splits the work for that many and leaves
// parts of it undone, without a word, where fewer come; OpenMP gives fewer if OMP_DYNAMIC,
// OMP_THREAD_LIMIT or OMP_MAX_ACTIVE_LEVELS says so, or inside a parallel region.
#pragma once

namespace tidemark {

// The threads of a compute stream for which `wanted` are asked for. 0: OMP_NUM_THREADS if that
// is set, else as many as processors that this process may use (affinity mask, CPU quota). At
// most OMP_THREAD_LIMIT, which is logged. Throws UsageError if `wanted` is negative.
int compute_threads(int wanted);

// From now on a parallel region on this thread has `threads` threads, or OMP_THREAD_LIMIT where
// that is less.
void use_threads(int threads);

// The same while it lives. A kernel's algorithm, workspace and results depend on that number:
// it must be the same when a kernel is prepared and when it runs.
class UseThreads {
 public:
  // Throws UsageError inside a parallel region, where there is only one thread.
  explicit UseThreads(int threads);
  ~UseThreads();
  UseThreads(const UseThreads&) = delete;
  UseThreads& operator=(const UseThreads&) = delete;

  int threads() const { return threads_; }

  // Throws DeviceError if OpenMP gives fewer. Checked when a thread's team size changes.
  void require_team() const;

 private:
  int threads_;
  int threads_before_, levels_before_;
  bool dynamic_before_;
};

}  // namespace tidemark
