#include "runtime/memory/disk_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/errors.h"

namespace tidemark {
namespace {

using namespace literals;
namespace fs = std::filesystem;

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (fs::temp_directory_path() / "tidemark-test-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("mkdtemp");
    path_ = name;
  }
  ~TemporaryDirectory() { fs::remove_all(path_); }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

struct Pages {
  explicit Pages(Bytes size) : bytes(static_cast<size_t>(size.count())) {
    data.reset(static_cast<std::byte*>(std::aligned_alloc(4096, bytes)));
  }
  void fill() {
    uint32_t x = 7;
    for (size_t i = 0; i < bytes; ++i) {
      x = x * 1664525 + 1013904223;
      data.get()[i] = static_cast<std::byte>(x >> 24);
    }
  }
  bool operator==(const Pages& other) const {
    return std::equal(data.get(), data.get() + bytes, other.data.get());
  }
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  size_t bytes;
  std::unique_ptr<std::byte, Free> data;
};

// A descriptor of this process for an unlinked file in `directory`.
std::string descriptor_in(const fs::path& directory) {
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    const std::string target = fs::read_symlink(entry.path(), ignored).string();
    if (target.starts_with(directory.string() + "/") && target.ends_with("(deleted)")) {
      return entry.path().string();
    }
  }
  return "";
}

// Bytes of the file in the page cache.
size_t cached(const std::string& path, size_t bytes) {
  const int fd = ::open(path.c_str(), O_RDONLY);
  EXPECT_GE(fd, 0);
  void* const map = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
  EXPECT_NE(map, MAP_FAILED);
  std::vector<unsigned char> resident(bytes / 4096);
  EXPECT_EQ(::mincore(map, bytes, resident.data()), 0);
  ::munmap(map, bytes);
  ::close(fd);
  size_t pages = 0;
  for (const unsigned char page : resident) pages += page & 1;
  return pages * 4096;
}

bool in_memory(const fs::path& directory) {
  struct statfs info {};
  return ::statfs(directory.c_str(), &info) == 0 && info.f_type == 0x01021994;
}

class TemporaryFileTest : public ::testing::TestWithParam<bool> {};

TEST_P(TemporaryFileTest, KeepsDataInvisiblyAndOutOfThePageCache) {
  const TemporaryDirectory directory;
  const auto file = make_temporary_file(directory.path().string(), GetParam());
  Pages out(16_MiB), in(16_MiB);
  out.fill();
  ASSERT_TRUE(file->allocate(Offset(0), Offset(0) + 20_MiB));
  write_fully(*file, out.data.get(), out.bytes, Offset(4096));
  EXPECT_TRUE(fs::is_empty(directory.path()));

  const std::string descriptor = descriptor_in(directory.path());
  ASSERT_FALSE(descriptor.empty());
  const bool on_disk = !in_memory(directory.path());
  // The kernel drops most pages at once and the rest soon.
  if (on_disk) {
    EXPECT_LT(cached(descriptor, out.bytes), out.bytes / 8);
  }
  read_fully(*file, in.data.get(), in.bytes, Offset(4096));
  EXPECT_TRUE(in == out);
  if (on_disk) {
    EXPECT_LT(cached(descriptor, out.bytes), out.bytes / 8);
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, TemporaryFileTest, ::testing::Bool(),
                         [](const auto& mode) { return mode.param ? "direct" : "flushed"; });

TEST(DiskFileTest, WorksOnAFileSystemInMemory) {
  if (!fs::is_directory("/dev/shm") || ::access("/dev/shm", W_OK) != 0) {
    GTEST_SKIP() << "there is none";
  }
  const auto file = make_temporary_file("/dev/shm");
  Pages out(64_KiB), in(64_KiB);
  out.fill();
  ASSERT_TRUE(file->allocate(Offset(0), Offset(1 << 20)));
  write_fully(*file, out.data.get(), out.bytes, Offset(8192));
  read_fully(*file, in.data.get(), in.bytes, Offset(8192));
  EXPECT_TRUE(in == out);
}

TEST(DiskFileTest, SpaceIsTakenFromTheDiskAtOnce) {
  const TemporaryDirectory directory;
  const auto file = make_temporary_file(directory.path().string());
  ASSERT_TRUE(file->allocate(Offset(0), Offset(0) + 8_MiB));
  struct stat info {};
  ASSERT_EQ(::stat(descriptor_in(directory.path()).c_str(), &info), 0);
  EXPECT_GE(info.st_size, 8 << 20);
  EXPECT_GE(info.st_blocks * 512, 8 << 20);
}

TEST(DiskFileTest, NoRoomIsAnAnswer) {
  const TemporaryDirectory directory;
  const auto file = make_temporary_file(directory.path().string());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{1 << 20, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const bool fits = file->allocate(Offset(0), Offset(1 << 20));
  const bool too_large = file->allocate(Offset(1 << 20), Offset(2 << 20));
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_TRUE(fits);
  EXPECT_FALSE(too_large);
  EXPECT_TRUE(file->allocate(Offset(1 << 20), Offset(2 << 20)));
  // No disk is this large.
  EXPECT_FALSE(file->allocate(Offset(2 << 20), Offset(int64_t{1} << 50)));
}

TEST(DiskFileTest, ADirectoryThatCannotBeUsedIsSaid) {
  try {
    make_temporary_file("/no/such/directory");
    FAIL();
  } catch (const DataError& error) {
    EXPECT_EQ(error.file(), "/no/such/directory");
  }
}

TEST(DiskFileTest, TheDefaultDirectoryIsTmpdir) {
  const TemporaryDirectory directory;
  const char* const before = std::getenv("TMPDIR");
  const std::string saved = before ? before : "";
  ::setenv("TMPDIR", directory.path().c_str(), 1);
  const auto file = make_temporary_file("");
  if (before) {
    ::setenv("TMPDIR", saved.c_str(), 1);
  } else {
    ::unsetenv("TMPDIR");
  }
  EXPECT_FALSE(descriptor_in(directory.path()).empty());
}

// The default directory if TMPDIR has this value.
std::optional<std::string> default_directory_with(const std::string& tmpdir) {
  const char* const before = std::getenv("TMPDIR");
  const std::string saved = before ? before : "";
  ::setenv("TMPDIR", tmpdir.c_str(), 1);
  const std::optional<std::string> found = default_disk_directory();
  if (before) {
    ::setenv("TMPDIR", saved.c_str(), 1);
  } else {
    ::unsetenv("TMPDIR");
  }
  return found;
}

TEST(DiskFileTest, TheDefaultIsNeverInRam) {
  const TemporaryDirectory directory;
  if (is_in_ram(directory.path())) GTEST_SKIP() << "temporary files are in RAM here";
  EXPECT_EQ(default_directory_with(directory.path()), directory.path().string());
  EXPECT_NE(default_directory_with("/no/such/folder"), "/no/such/folder");
  const fs::path shared = "/dev/shm";
  if (!fs::exists(shared)) GTEST_SKIP() << "there is no file system in RAM";
  EXPECT_TRUE(is_in_ram(shared));
  EXPECT_NE(default_directory_with(shared), shared.string());
}

TEST(DiskFileTest, AFolderInRamIsTakenIfItIsNamed) {
  const fs::path shared = "/dev/shm";
  if (!is_in_ram(shared)) GTEST_SKIP() << "there is no file system in RAM";
  EXPECT_TRUE(make_temporary_file(shared));
}

TEST(DiskFileTest, FreeSpaceIsThatOfTheFileSystem) {
  const TemporaryDirectory directory;
  const std::optional<Bytes> free = free_disk_space(directory.path());
  ASSERT_TRUE(free);
  EXPECT_GT(*free, Bytes(0));
  EXPECT_FALSE(free_disk_space("/no/such/folder"));
}

}  // namespace
}  // namespace tidemark
