// Lets only one run at a time write a file: the holder of a path's lock excludes all other
// runs.
//
//   const FileLock lock(options.checkpoint);  // before training; released at the end
//
// Each save replaces the file itself, so the lock is on "<file>.lock" beside it (links are
// followed). The kernel releases the lock when the process ends for any reason, so a lock file
// left by a killed run locks nothing. The destructor removes the lock file, unless it existed
// before and was empty.
//
// On file systems that do not support locks, logs a warning and locks nothing.
//
// Threads: any; one thread at a time may use a lock. Two locks on one path in one process also
// exclude each other.
#pragma once

#include <sys/types.h>

#include <string>

namespace tidemark {

class FileLock {
 public:
  // Does not wait. Throws DataError if another run holds the lock ("is in use by another run
  // (process 1234)"), if "<file>.lock" exists but is not such a lock, if `path` is neither a
  // regular file nor absent, or if its folder is missing or not writable.
  explicit FileLock(const std::string& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  std::string lock_path_;
  int file_ = -1;
  bool remove_ = false;  // the file was made by this run or by a killed one
  pid_t owner_ = 0;      // a forked child must not remove what its parent holds
};

}  // namespace tidemark
