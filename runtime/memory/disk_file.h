// The file of the disk tier. It is unlinked, so it disappears with its last user even after a
// crash. It is written and read past the page cache, or flushed and dropped from it.
//
// An interface, so that tests can simulate a disk that is full or fails.
//
// Threads: allocate() from the issuing thread only; one writer and one reader may run beside
// it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "runtime/core/units.h"

namespace tidemark {

// O_DIRECT's requirement for offsets, lengths and addresses.
inline constexpr Bytes kDiskAlignment{4096};

class DiskFile {
 public:
  virtual ~DiskFile() = default;
  // Allocates [begin, end) of the file on the disk. False if the disk has no space. Throws
  // DeviceError on any other failure.
  virtual bool allocate(Offset begin, Offset end) = 0;
  // As pwrite(2) and pread(2): may transfer less than requested, or return -1 and set errno.
  // REQUIRES: all arguments are multiples of kDiskAlignment.
  virtual ssize_t write(const std::byte* from, size_t bytes, Offset at) = 0;
  virtual ssize_t read(std::byte* to, size_t bytes, Offset at) = 0;
};

// Continues after short transfers and EINTR. Throws DeviceError on failure, naming operation,
// place and cause; the call may then be repeated with the same arguments.
void write_fully(DiskFile& file, const std::byte* from, size_t bytes, Offset at);
void read_fully(DiskFile& file, std::byte* to, size_t bytes, Offset at);

// Whether files in `directory` use RAM (tmpfs, ramfs). False if the system does not say.
bool is_in_ram(const std::string& directory);
// The default folder of the disk tier: the first of TMPDIR, /var/tmp and the current folder
// that is writable and on a disk. None if there is no such folder.
std::optional<std::string> default_disk_directory();
// Disk space that this user may still use in `directory`. None if the system does not say.
std::optional<Bytes> free_disk_space(const std::string& directory);

// A file in `directory`; empty: default_disk_directory(). Throws DataError if there is no such
// folder or it cannot be used. `direct` false: does not try O_DIRECT.
std::unique_ptr<DiskFile> make_temporary_file(const std::string& directory, bool direct = true);

}  // namespace tidemark
