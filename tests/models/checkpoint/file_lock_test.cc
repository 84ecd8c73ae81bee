#include "models/checkpoint/file_lock.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <memory>

#include "runtime/core/errors.h"
#include "tests/models/data/files.h"
#include "tests/support/usage_error.h"

namespace tidemark {
namespace {

using testing::TempFolder;

std::string refused(const std::string& path) {
  return testing::message_of<DataError>([&] { const FileLock lock(path); });
}

// A process that holds the lock of a file until it is ended.
class Holder {
 public:
  explicit Holder(const std::string& path) {
    int ready[2];
    if (pipe(ready) != 0) throw std::runtime_error("no pipe");
    child_ = fork();
    if (child_ == 0) {
      const FileLock lock(path);
      const char locked = 1;
      if (write(ready[1], &locked, 1) != 1) _exit(1);
      while (true) pause();
    }
    close(ready[1]);
    char locked = 0;
    EXPECT_EQ(read(ready[0], &locked, 1), 1);
    close(ready[0]);
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  ~Holder() { kill_now(); }
  pid_t process() const { return child_; }
  void kill_now() {
    if (child_ == 0) return;
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    child_ = 0;
  }

 private:
  pid_t child_ = 0;
};

TEST(FileLock, KeepsOtherRunsOutAndSaysWhoHoldsIt) {
  const TempFolder folder;
  const std::string path = folder.path() + "/run.safetensors";
  const Holder holder(path);
  EXPECT_NE(refused(path).find("is in use by another run (process " +
                               std::to_string(holder.process()) + ")"),
            std::string::npos)
      << refused(path);
  EXPECT_EQ(refused(folder.path() + "/other.safetensors"), "");
}

TEST(FileLock, AKilledRunLocksNothing) {
  const TempFolder folder;
  const std::string path = folder.path() + "/run.safetensors";
  Holder holder(path);
  holder.kill_now();
  EXPECT_TRUE(std::filesystem::exists(path + ".lock")) << "the case that is tested";
  EXPECT_EQ(refused(path), "");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(FileLock, OnePathByAnotherNameIsTheSameFile) {
  namespace fs = std::filesystem;
  const TempFolder folder;
  const std::string path = folder.write("real/run", {'x'});
  const std::string link = folder.path() + "/link";
  fs::create_symlink("real/run", link);
  {
    const FileLock lock(link);
    EXPECT_NE(refused(path), "");
    EXPECT_NE(refused(folder.path() + "/real/../real/run"), "");
    // Saving replaces the file; the lock stays.
    fs::rename(folder.write("real/run.partial", {'y'}), path);
    EXPECT_NE(refused(path), "");
    EXPECT_NE(refused(path).find("process " + std::to_string(getpid())), std::string::npos);
  }
  EXPECT_EQ(refused(path), "");
  EXPECT_FALSE(fs::exists(path + ".lock"));
  EXPECT_NE(refused("/dev/null").find("is a device"), std::string::npos);
  EXPECT_NE(refused(folder.path() + "/none/run").find("cannot be locked"), std::string::npos);
}

// What is in the way is somebody's: it is neither written to nor removed.
TEST(FileLock, AFileThatIsNoLockIsRefusedAndStays) {
  namespace fs = std::filesystem;
  const TempFolder folder;
  const std::string path = folder.path() + "/run";
  const std::string longer = "locked by Tidemark, process 12\nand my notes\n";
  for (const std::string text : {"x\n", "1234\n", "locked by Tidemark", longer.c_str()}) {
    const std::string in_the_way = folder.write("run.lock", {text.begin(), text.end()});
    EXPECT_NE(refused(path).find(in_the_way + " is not a lock file"), std::string::npos)
        << refused(path);
    const testing::ByteVector left = testing::read_bytes(in_the_way);
    EXPECT_EQ(std::string(left.begin(), left.end()), text);
  }
  fs::remove(path + ".lock");
  ASSERT_EQ(mkfifo((path + ".lock").c_str(), 0600), 0);
  EXPECT_NE(refused(path).find("is not a lock file"), std::string::npos) << refused(path);
  EXPECT_TRUE(fs::is_fifo(path + ".lock"));
}

// A run that was killed before it wrote its name leaves one, but so does `touch`.
TEST(FileLock, AnEmptyFileIsLockedAndStaysEmpty) {
  const TempFolder folder;
  const std::string path = folder.path() + "/run";
  const std::string empty = folder.write("run.lock", {});
  {
    const FileLock lock(path);
    EXPECT_NE(refused(path).find("process " + std::to_string(getpid())), std::string::npos);
  }
  EXPECT_TRUE(std::filesystem::is_empty(empty));
}

// The child of a fork leaves its parent's lock alone.
TEST(FileLock, AForkedChildDoesNotReleaseIt) {
  const TempFolder folder;
  const std::string path = folder.path() + "/run";
  auto lock = std::make_unique<FileLock>(path);
  const pid_t child = fork();
  if (child == 0) {
    lock.reset();
    _exit(0);
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_NE(refused(path), "");
  lock.reset();
  EXPECT_EQ(refused(path), "");
}

}  // namespace
}  // namespace tidemark
