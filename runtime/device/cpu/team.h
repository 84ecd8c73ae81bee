// The OpenMP threads that compute on the CPU: their number, and a check that all of them run.
//
// A kernel is prepared for a number of threads. oneDNN splits the work for that number, and
// silently leaves parts undone if fewer run. OpenMP runs fewer if OMP_DYNAMIC, OMP_THREAD_LIMIT
// or OMP_MAX_ACTIVE_LEVELS says so, or inside a parallel region.
#pragma once

namespace tidemark {

// The number of threads for a compute stream if `wanted` are requested. 0: OMP_NUM_THREADS if
// set, else the number of processors that this process may use (affinity mask, CPU quota). At
// most OMP_THREAD_LIMIT, which is logged. Throws UsageError if `wanted` is negative.
int compute_threads(int wanted);

// From now on, parallel regions on this thread use `threads` threads, or OMP_THREAD_LIMIT if
// that is less.
void use_threads(int threads);

// As use_threads(), during this object's life. A kernel's algorithm, workspace and results
// depend on the number of threads, which must be the same when it is prepared and when it runs.
class UseThreads {
 public:
  // Throws UsageError inside a parallel region, where only one thread is available.
  explicit UseThreads(int threads);
  ~UseThreads();
  UseThreads(const UseThreads&) = delete;
  UseThreads& operator=(const UseThreads&) = delete;

  int threads() const { return threads_; }

  // Throws DeviceError if OpenMP runs fewer threads. Checked when a thread's team size changes.
  void require_team() const;

 private:
  int threads_;
  int threads_before_, levels_before_;
  bool dynamic_before_;
};

}  // namespace tidemark
