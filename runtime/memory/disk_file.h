// The file below the disk tier: unlinked, so that it goes when its last user does, however that
// ends; written and read past the page cache, or flushed and dropped from it.
//
// An interface, so that tests can give a tier a disk that is full or fails.
//
// Threads: allocate() is the issuing thread's; one writer and one reader may run beside it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "runtime/core/units.h"

namespace tidemark {

// What O_DIRECT asks of offsets, lengths and addresses.
inline constexpr Bytes kDiskAlignment{4096};

class DiskFile {
 public:
  virtual ~DiskFile() = default;
  // Takes [begin, end) of the file on the disk. False: there is no room. Throws DeviceError if
  // it fails for another reason.
  virtual bool allocate(Offset begin, Offset end) = 0;
  // As pwrite(2) and pread(2): may do less than asked, or return -1 and set errno.
  // REQUIRES: everything is a multiple of kDiskAlignment.
  virtual ssize_t write(const std::byte* from, size_t bytes, Offset at) = 0;
  virtual ssize_t read(std::byte* to, size_t bytes, Offset at) = 0;
};

// Goes on after short transfers and EINTR. Throws DeviceError on failure, naming operation,
// place and cause; may be called again with the same arguments then.
void write_fully(DiskFile& file, const std::byte* from, size_t bytes, Offset at);
void read_fully(DiskFile& file, std::byte* to, size_t bytes, Offset at);

// True if files in `directory` take RAM (tmpfs, ramfs). False if the system does not say.
bool is_in_ram(const std::string& directory);
// Where the disk tier is by default: the first of TMPDIR, /var/tmp and the current folder that
// can be written and is on a disk. None: there is no such folder.
std::optional<std::string> default_disk_directory();
// Disk space that this user may still take there. None if the system does not say.
std::optional<Bytes> free_disk_space(const std::string& directory);

// In `directory`; empty: default_disk_directory(). Throws DataError if there is none, or it
// cannot be used. `direct` false: does not even try O_DIRECT.
std::unique_ptr<DiskFile> make_temporary_file(const std::string& directory, bool direct = true);

}  // namespace tidemark
