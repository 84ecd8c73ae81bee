// One run at a time writes a file: who holds the lock of a path keeps every other run from it.
//
//   const FileLock lock(options.checkpoint);  // before training; released at the end
//
// The lock is on "<file>.lock" beside the file (links are followed), as the file itself is
// replaced with each save. The kernel releases it when the process ends, however it ends, so a
// lock file that a killed run leaves behind locks nothing. The destructor removes the lock
// file, unless it was there before, empty.
//
// On file systems without locks a warning is logged and nothing is locked.
//
// Threads: any; one lock belongs to one thread at a time. Two locks of one path in one process
// exclude each other too.
#pragma once

#include <sys/types.h>

#include <string>

namespace tidemark {

class FileLock {
 public:
  // Does not wait. Throws DataError if another run holds it ("is in use by another run (process
  // 1234)"), if there is a "<file>.lock" that is none of these, if `path` is neither a regular
  // file nor absent, or if its folder is missing or cannot be written.
  explicit FileLock(const std::string& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  std::string lock_path_;
  int file_ = -1;
  bool remove_ = false;  // it was made by a run, this one or one that was killed
  pid_t owner_ = 0;      // a forked child must not remove what its parent holds
};

}  // namespace tidemark
