#include "runtime/memory/disk_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <system_error>

#include "runtime/core/errors.h"
#include "runtime/core/log.h"
#include "runtime/core/process_limits.h"

namespace tidemark {
namespace {

constexpr long kTmpfsMagic = 0x01021994;
constexpr long kRamfsMagic = 0x858458f6;

std::string cause(int error) { return std::generic_category().message(error); }

class TemporaryFile final : public DiskFile {
 public:
  TemporaryFile(const std::string& directory, bool direct) {
    fd_ = ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
    if (fd_ < 0) {  // not every file system has O_TMPFILE
      std::string path = directory + "/tidemark-XXXXXX";
      fd_ = ::mkostemp(path.data(), O_CLOEXEC);
      if (fd_ < 0)
        throw DataError(directory, "cannot create a temporary file: " + cause(errno));
      ::unlink(path.c_str());
    }
    if (is_in_ram(directory)) {
      log().warn("{} is on an in-memory file system: a disk tier there frees no memory",
                 directory);
    }
    direct_ = direct && try_direct();
    if (!direct_) {
      log().info("{}: O_DIRECT is not supported, so the disk tier flushes its writes",
                 directory);
      ::posix_fadvise(fd_, 0, 0, POSIX_FADV_RANDOM);  // no reading ahead into the page cache
    }
  }
  ~TemporaryFile() override { ::close(fd_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  bool allocate(Offset begin, Offset end) override {
    // Beyond this limit the kernel ends the process (SIGXFSZ) instead of refusing.
    const std::optional<Bytes> largest = resource_limit(RLIMIT_FSIZE);
    if (largest && largest->count() < end.value()) return false;
    int error = 0;
    do {
      error = ::posix_fallocate(fd_, begin.value(), (end - begin).count());
    } while (error == EINTR);
    if (error == EINVAL && direct_) {  // its emulation writes single bytes
      set_direct(false);
      direct_ = false;
      return allocate(begin, end);
    }
    if (error == ENOSPC || error == EFBIG || error == EDQUOT) return false;
    if (error != 0) {
      throw DeviceError("[disk tier] allocating " + std::to_string((end - begin).count()) +
                        " bytes: " + cause(error));
    }
    return true;
  }

  ssize_t write(const std::byte* from, size_t bytes, Offset at) override {
    const ssize_t done = ::pwrite(fd_, from, bytes, at.value());
    if (done > 0 && !direct_) {
      // Pages are written to the disk before they are dropped: dirty pages would stay.
      constexpr unsigned kAll =
          SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
      if (::sync_file_range(fd_, at.value(), done, kAll) != 0 && ::fdatasync(fd_) != 0)
        return -1;
      ::posix_fadvise(fd_, at.value(), done, POSIX_FADV_DONTNEED);
    }
    return done;
  }

  ssize_t read(std::byte* to, size_t bytes, Offset at) override {
    const ssize_t done = ::pread(fd_, to, bytes, at.value());
    if (done > 0 && !direct_) ::posix_fadvise(fd_, at.value(), done, POSIX_FADV_DONTNEED);
    return done;
  }

 private:
  bool set_direct(bool on) {
    const int flags = ::fcntl(fd_, F_GETFL);
    return ::fcntl(fd_, F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
  }

  // Some file systems accept O_DIRECT and then refuse the write.
  bool try_direct() {
    if (!set_direct(true)) return false;
    const size_t size = static_cast<size_t>(kDiskAlignment.count());
    void* const page = std::aligned_alloc(size, size);
    if (!page) throw std::bad_alloc();
    std::memset(page, 0, size);
    const bool good = ::pwrite(fd_, page, size, 0) == static_cast<ssize_t>(size) &&
                      ::pread(fd_, page, size, 0) == static_cast<ssize_t>(size);
    std::free(page);
    if (!good) set_direct(false);
    return good;
  }

  int fd_ = -1;
  std::atomic<bool> direct_ = false;
};

template <class Transfer>
void transfer_fully(const char* what, size_t bytes, Offset at, const Transfer& transfer) {
  const auto page = static_cast<size_t>(kDiskAlignment.count());
  for (size_t done = 0; done < bytes;) {
    const Offset place = at + Bytes(static_cast<int64_t>(done));
    const ssize_t n = transfer(done, bytes - done, place);
    if (n < 0 && errno == EINTR) continue;
    // The rest must begin on a page boundary again.
    const size_t step = n < 0 ? 0 : static_cast<size_t>(n) / page * page;
    if (step == 0) {
      throw DeviceError(std::string("[disk tier] ") + what + " " +
                        std::to_string(bytes - done) + " bytes at " +
                        std::to_string(place.value()) + ": " +
                        (n < 0 ? cause(errno) : "ended after " + std::to_string(n)));
    }
    done += step;
  }
}

}  // namespace

void write_fully(DiskFile& file, const std::byte* from, size_t bytes, Offset at) {
  transfer_fully("writing", bytes, at, [&](size_t done, size_t rest, Offset place) {
    return file.write(from + done, rest, place);
  });
}

void read_fully(DiskFile& file, std::byte* to, size_t bytes, Offset at) {
  transfer_fully("reading", bytes, at, [&](size_t done, size_t rest, Offset place) {
    return file.read(to + done, rest, place);
  });
}

bool is_in_ram(const std::string& directory) {
  struct statfs info {};
  return ::statfs(directory.c_str(), &info) == 0 &&
         (info.f_type == kTmpfsMagic || info.f_type == kRamfsMagic);
}

std::optional<std::string> default_disk_directory() {
  const char* const tmpdir = std::getenv("TMPDIR");
  for (const std::string candidate : {tmpdir ? tmpdir : "", "/var/tmp", "."}) {
    if (candidate.empty() || is_in_ram(candidate)) continue;
    if (::access(candidate.c_str(), W_OK | X_OK) == 0) return candidate;
  }
  return std::nullopt;
}

std::optional<Bytes> free_disk_space(const std::string& directory) {
  struct statvfs info {};
  if (::statvfs(directory.c_str(), &info) != 0) return std::nullopt;
  return Bytes(static_cast<int64_t>(info.f_bavail) * static_cast<int64_t>(info.f_frsize));
}

std::unique_ptr<DiskFile> make_temporary_file(const std::string& directory, bool direct) {
  if (!directory.empty()) return std::make_unique<TemporaryFile>(directory, direct);
  const std::optional<std::string> place = default_disk_directory();
  if (!place) {
    throw DataError("the disk tier",
                    "TMPDIR, /var/tmp and the current folder are not writable folders on a "
                    "disk; name one that is");
  }
  return std::make_unique<TemporaryFile>(*place, direct);
}

}  // namespace tidemark
