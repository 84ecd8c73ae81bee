#include "runtime/core/atomic_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <string_view>
#include <thread>

#include "runtime/core/errors.h"
#include "tests/models/data/files.h"

namespace tidemark {
namespace {

using testing::data_error;
using testing::TempFolder;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string content(const std::string& path) {
  const testing::ByteVector bytes = testing::read_bytes(path);
  return {bytes.begin(), bytes.end()};
}

size_t files_in(const TempFolder& folder) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder.path()),
                                           std::filesystem::directory_iterator()));
}

TEST(AtomicFile, AppearsWithCommit) {
  const TempFolder folder;
  const std::string path = folder.path() + "/state";
  {
    AtomicFile file(path);
    file.write(bytes_of("hello "));
    file.write(bytes_of("world"));
    file.overwrite(6, bytes_of("W"));
    EXPECT_EQ(file.size(), 11);
    EXPECT_FALSE(std::filesystem::exists(path));
    file.commit();
    EXPECT_EQ(content(path), "hello World");
  }
  EXPECT_EQ(content(path), "hello World");
  EXPECT_EQ(files_in(folder), 1u);
}

// After commit(), a file with the partial file's name belongs to another writer.
TEST(AtomicFile, CommittedFilesHaveNothingToRemove) {
  const TempFolder folder;
  AtomicFile file(folder.path() + "/state");
  file.commit();
  const std::string others = folder.write(std::string("state") + kPartialSuffix, {'x'});
  remove_partial_files();
  EXPECT_TRUE(std::filesystem::exists(others));
}

TEST(AtomicFile, WithoutCommitTheOldOneStays) {
  const TempFolder folder;
  const std::string path = folder.write("state", {'o', 'l', 'd'});
  {
    AtomicFile file(path);
    file.write(bytes_of("new"));
  }
  EXPECT_EQ(content(path), "old");
  EXPECT_EQ(files_in(folder), 1u);
}

TEST(AtomicFile, LeavesOtherFilesAlone) {
  const TempFolder folder;
  const std::string path = folder.path() + "/state";
  const std::string other = folder.write("state.partial", {'m', 'i', 'n', 'e'});
  {
    AtomicFile file(path);
    file.write(bytes_of("new"));
    file.commit();
  }
  EXPECT_EQ(content(path), "new");
  EXPECT_EQ(content(other), "mine");
}

// The pause gives the second writer time to disturb the first; the test does not depend on it.
TEST(AtomicFile, ASecondWriterWaitsForTheFirst) {
  const TempFolder folder;
  const std::string path = folder.path() + "/state";
  auto first = std::make_unique<AtomicFile>(path);
  first->write(bytes_of("first"));
  std::thread other([&] {
    AtomicFile second(path);
    second.write(bytes_of("second"));
    second.commit();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  first->commit();
  first.reset();
  other.join();
  EXPECT_EQ(content(path), "second");
  EXPECT_EQ(files_in(folder), 1u);
}

// A partial file may remain after a crash or a killed writer.
TEST(AtomicFile, WhatACrashHasLeftIsWrittenOver) {
  const TempFolder folder;
  folder.write(std::string("state") + kPartialSuffix, {'l', 'o', 'n', 'g', 'e', 'r'});
  const std::string path = folder.path() + "/state";
  AtomicFile file(path);
  file.write(bytes_of("new"));
  file.commit();
  EXPECT_EQ(content(path), "new");
}

TEST(AtomicFile, WhereNothingCanBeWrittenIsAnError) {
  const TempFolder folder;
  const std::string path = folder.path() + "/none/state";
  data_error([&] { AtomicFile file(path); }, path);
  const std::string taken = folder.path() + "/taken";
  AtomicFile file(taken);
  file.write(bytes_of("x"));
  std::filesystem::create_directory(taken);
  EXPECT_EQ(data_error([&] { file.commit(); }, taken), -1);
  EXPECT_EQ(data_error([&] { AtomicFile second(taken); }, taken), -1);
}

// A link stays a link. Its target is written in the target's own folder, where a rename is
// atomic.
TEST(AtomicFile, FollowsLinks) {
  namespace fs = std::filesystem;
  const TempFolder folder;
  const std::string target = folder.write("real/state", {'o', 'l', 'd'});
  const std::string link = folder.path() + "/link", second = folder.path() + "/second";
  fs::create_symlink("real/state", link);  // relative to the link's folder
  fs::create_symlink(link, second);
  {
    AtomicFile file(second);
    EXPECT_TRUE(fs::exists(target + kPartialSuffix));
    file.write(bytes_of("new"));
    file.commit();
  }
  EXPECT_EQ(content(target), "new");
  EXPECT_TRUE(fs::is_symlink(link) && fs::is_symlink(second));
  EXPECT_EQ(files_in(folder), 3u);

  const std::string dangling = folder.path() + "/dangling";
  fs::create_symlink("real/later", dangling);
  {
    AtomicFile file(dangling);
    file.write(bytes_of("x"));
    file.commit();
  }
  EXPECT_TRUE(fs::is_symlink(dangling));
  EXPECT_EQ(content(folder.path() + "/real/later"), "x");

  const std::string loop = folder.path() + "/loop";
  fs::create_symlink("loop", loop);
  data_error([&] { AtomicFile file(loop); }, loop);
  EXPECT_TRUE(fs::is_symlink(loop));
}

std::string refused(const std::string& path) {
  try {
    const AtomicFile file(path);
  } catch (const DataError& error) {
    EXPECT_EQ(error.file(), path);
    return error.what();
  }
  return "not refused";
}

TEST(AtomicFile, WhatIsNoRegularFileIsRefusedAndStays) {
  namespace fs = std::filesystem;
  const TempFolder folder;
  const std::string pipe = folder.path() + "/pipe", socket_path = folder.path() + "/socket";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(socket_path.size(), sizeof(address.sun_path));
  socket_path.copy(address.sun_path, socket_path.size());
  ASSERT_EQ(bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  const std::string link = folder.path() + "/link";
  fs::create_symlink("/dev/null", link);

  EXPECT_NE(refused(folder.path()).find("is a folder"), std::string::npos);
  EXPECT_EQ(refused("/dev/null").find("byte"), std::string::npos) << "the file as a whole";
  EXPECT_NE(refused(pipe).find("is a pipe"), std::string::npos);
  EXPECT_NE(refused(socket_path).find("is a socket"), std::string::npos);
  EXPECT_NE(refused("/dev/null").find("is a device"), std::string::npos);
  EXPECT_NE(refused(link).find("is a device"), std::string::npos);
  EXPECT_FALSE(fs::exists("/dev/null.partial"));
  EXPECT_EQ(files_in(folder), 3u) << "nothing was left";
  close(listener);
}

TEST(AtomicFile, PermissionsStay) {
  namespace fs = std::filesystem;
  const TempFolder folder;
  const std::string path = folder.write("state", {'o', 'l', 'd'});
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  AtomicFile file(path);
  file.write("new");
  EXPECT_EQ(fs::status(path + kPartialSuffix).permissions(), fs::status(path).permissions());
  file.commit();
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST(AtomicFile, APipeInThePlaceOfThePartialFileIsNotWaitedFor) {
  const TempFolder folder;
  const std::string path = folder.path() + "/state";
  ASSERT_EQ(mkfifo((path + kPartialSuffix).c_str(), 0600), 0);
  alarm(60);
  EXPECT_EQ(data_error([&] { AtomicFile file(path); }, path), -1);
  alarm(0);
}

TEST(AtomicFile, StreamsAreWrittenWhereThatIsWanted) {
  const TempFolder folder;
  const std::string pipe = folder.path() + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const int reader = open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  check_writable(pipe);
  char got[8] = {};
  pollfd hung_up{reader, POLLIN, 0};
  EXPECT_EQ(poll(&hung_up, 1, 0), 0) << "nobody has opened and closed it";
  {
    AtomicFile file(pipe, AtomicFile::Streams::kWritten);
    file.write("text");
    file.commit();
  }
  EXPECT_EQ(read(reader, got, sizeof got), 4);
  EXPECT_STREQ(got, "text");
  close(reader);
  EXPECT_EQ(files_in(folder), 1u) << "the pipe is still there";
  AtomicFile full("/dev/full", AtomicFile::Streams::kWritten);
  EXPECT_EQ(data_error([&] { full.write("x"); }, "/dev/full"), 0);
}

TEST(AtomicFile, WhatCannotBeWrittenIsKnownBefore) {
  namespace fs = std::filesystem;
  const TempFolder folder;
  const std::string path = folder.write("state", {'o', 'l', 'd'});
  check_writable(path);
  check_writable(folder.path() + "/new");
  EXPECT_EQ(content(path), "old");
  EXPECT_EQ(files_in(folder), 1u);
  const std::string circle = folder.path() + "/circle";
  fs::create_symlink(circle, circle);
  for (const std::string& bad :
       {circle, folder.path(), folder.path() + "/none/file", std::string("/proc/self/mem")}) {
    data_error([&] { check_writable(bad); }, bad);
  }
}

// The system ends the process at a chosen byte of the file, like a crash.
void write_and_die_at(const std::string& path, rlim_t limit) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const rlimit no_core{0, 0}, size{limit, limit};
    setrlimit(RLIMIT_CORE, &no_core);
    setrlimit(RLIMIT_FSIZE, &size);
    AtomicFile file(path);
    for (int i = 0; i < 10; ++i) file.write(bytes_of("0123456789"));
    file.commit();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (limit < 100) {
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ) << limit;
  } else {
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << limit;
  }
}

TEST(AtomicFile, ACrashLeavesTheOldOneAndTheNextAttemptWorks) {
  const TempFolder folder;
  const std::string path = folder.write("state", {'o', 'l', 'd'});
  for (const rlim_t limit : {0, 1, 10, 55, 99}) {
    write_and_die_at(path, limit);
    EXPECT_EQ(content(path), "old") << limit;
  }
  write_and_die_at(path, 1000);
  EXPECT_EQ(content(path).size(), 100u);
  EXPECT_EQ(files_in(folder), 1u) << "what crashes left is gone";
}

TEST(AtomicFile, AFullDiskIsAnErrorThatNamesTheByte) {
  const TempFolder folder;
  const std::string path = folder.write("state", {'o', 'l', 'd'});
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{64, before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  int64_t offset = 0;
  {
    AtomicFile file(path);
    offset = data_error(
        [&] {
          for (int i = 0; i < 10; ++i) file.write(bytes_of("0123456789"));
        },
        path);
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(offset, 64);
  EXPECT_EQ(content(path), "old");
  EXPECT_EQ(files_in(folder), 1u);
}

}  // namespace
}  // namespace tidemark
