// Locks for clang's thread-safety analysis (-Wthread-safety); with other compilers the
// annotations are empty and the locks are std::mutex.
//
// A shared field is declared GUARDED_BY(mutex_); a method that needs the lock is declared
// REQUIRES(mutex_). Violations are then compile errors.
#pragma once

#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define TIDEMARK_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define TIDEMARK_THREAD_ATTRIBUTE(x)
#endif

#define CAPABILITY(x) TIDEMARK_THREAD_ATTRIBUTE(capability(x))
#define SCOPED_CAPABILITY TIDEMARK_THREAD_ATTRIBUTE(scoped_lockable)
#define GUARDED_BY(x) TIDEMARK_THREAD_ATTRIBUTE(guarded_by(x))
#define REQUIRES(...) TIDEMARK_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define ACQUIRE(...) TIDEMARK_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define RELEASE(...) TIDEMARK_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define EXCLUDES(...) TIDEMARK_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define NO_THREAD_SAFETY_ANALYSIS TIDEMARK_THREAD_ATTRIBUTE(no_thread_safety_analysis)

namespace tidemark {

class CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() ACQUIRE() { mutex_.lock(); }
  void unlock() RELEASE() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Waits may end without a notification: call them in a loop over the condition.
class CondVar {
 public:
  void wait(Mutex& mutex) REQUIRES(mutex) {
    // The caller holds the lock before and after; unique_lock only lends it to the wait.
    std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace tidemark
