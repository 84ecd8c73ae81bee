// Damaged data ends train_resnet with code 2, before any training, and says where the damage
// is.
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "tests/models/data/files.h"

namespace tidemark::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct Result {
  int code = -1;
  std::string error;
};

Result train(const TempFolder& folder, const std::string& data) {
  const std::string errors = folder.path() + "/errors";
  const std::string command =
      std::string(TIDEMARK_TRAIN_RESNET " --steps 1 --batch 2 --data ") + data + " > " +
      folder.path() + "/out 2> " + errors;
  const int status = std::system(command.c_str());
  const ByteVector text = read_bytes(errors);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, {text.begin(), text.end()}};
}

auto says(const std::string& file, int64_t offset) {
  return AllOf(HasSubstr(file + ", byte " + std::to_string(offset) + ":"),
               Not(HasSubstr("step ")));
}

TEST(BadInput, TruncatedMnist) {
  const TempFolder folder;
  const ByteVector header{0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 28, 0, 0, 0, 28};
  ByteVector images(header.size() + 1234);  // of 1568 pixels
  std::copy(header.begin(), header.end(), images.begin());
  const std::string file = folder.write("train-images-idx3-ubyte", images);
  folder.write("train-labels-idx1-ubyte", {0, 0, 8, 1, 0, 0, 0, 2, 3, 4});
  const Result result = train(folder, "mnist:" + folder.path());
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.error, says(file, 1250));
}

TEST(BadInput, TruncatedCifar10) {
  const TempFolder folder;
  const std::string file = folder.write("data_batch_1.bin", ByteVector(4711));
  const Result result = train(folder, "cifar10:" + folder.path());
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.error, says(file, 4711));
}

TEST(BadInput, DamagedPicture) {
  const TempFolder folder;
  const ByteVector good = png_file(picture(16, 16, 3));
  for (const char* name : {"train/a/1.png", "train/b/1.png", "val/a/1.png"}) {
    folder.write(name, good);
  }
  const std::string file = folder.write("val/b/1.png", first(good, good.size() - 20));
  const Result result = train(folder, "folder:" + folder.path());
  EXPECT_EQ(result.code, 2);
  constexpr int64_t kFirstChunkThatIsCut = 33;  // the one behind the header
  EXPECT_THAT(result.error, says(file, kFirstChunkThatIsCut));
}

TEST(BadInput, WhatIsNoFolderHasNoByteAtFault) {
  const TempFolder folder;
  const std::string file = folder.write("file", {1, 2, 3});
  const Result result = train(folder, "folder:" + file);
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.error, HasSubstr("train_resnet: " + file + ": not a folder"));
}

}  // namespace
}  // namespace tidemark::testing
