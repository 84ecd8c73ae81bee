#include "examples/common/data_source.h"

#include <gtest/gtest.h>

#include <string>

#include "runtime/core/errors.h"
#include "tests/models/data/files.h"

namespace tidemark {
namespace {

ResNetFlags flags_for(const std::string& data) {
  ResNetFlags flags;
  flags.data = data;
  return flags;
}

TEST(DataSource, DescribesWithoutTouchingFiles) {
  const DataSource mnist = describe_data(flags_for("mnist:/nowhere/at/all"));
  EXPECT_EQ(mnist.sample, (Shape{28, 28, 1}));
  EXPECT_EQ(mnist.classes, 10);
  EXPECT_EQ(mnist.train_size, 60'000);
  EXPECT_EQ(mnist.path, "/nowhere/at/all");
  ResNetFlags flags = flags_for("folder:x");
  flags.image_size = 96;
  flags.classes = 12;
  const DataSource folder = describe_data(flags);
  EXPECT_EQ(folder.sample, (Shape{96, 96, 3}));
  EXPECT_EQ(folder.classes, 12);
}

TEST(DataSource, BadFlagsAndMissingFiles) {
  EXPECT_THROW(describe_data(flags_for("imagenet")), UsageError);
  EXPECT_THROW(describe_data(flags_for("mnist")), UsageError);
  EXPECT_THROW(describe_data(flags_for("digits:dir")), UsageError);
  EXPECT_THROW(open_data(flags_for("mnist:/nowhere/at/all")), DataError);
}

TEST(DataSource, OneClassIsNothingToTrainOn) {
  const testing::TempFolder folder;
  const testing::ByteVector image = testing::png_file(testing::picture(8, 8, 3));
  for (const char* name : {"1", "2"}) folder.write("cat/" + std::string(name) + ".png", image);
  try {
    open_data(flags_for("folder:" + folder.path()));
    ADD_FAILURE();
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("one class"), std::string::npos) << error.what();
  }
  for (const char* name : {"1", "2"}) folder.write("dog/" + std::string(name) + ".png", image);
  EXPECT_EQ(open_data(flags_for("folder:" + folder.path())).classes, 2);
}

TEST(DataSource, DescriptionOfDigitsIsTheirTruth) {
  const DataSource described = describe_data(flags_for("digits"));
  const DataSource opened = open_data(flags_for("digits"));
  EXPECT_EQ(described.sample, opened.sample);
  EXPECT_EQ(described.classes, opened.classes);
  EXPECT_EQ(described.train_size, opened.train_size);
  EXPECT_EQ(described.test_size, opened.test_size);
}

TEST(Schedule, EpochsStepsAndTheLastBatch) {
  ResNetFlags flags = flags_for("digits");
  flags.batch = 100;
  flags.epochs = 2;
  const DataSource data = describe_data(flags);
  const ImageSchedule epochs = make_schedule(flags, data);
  EXPECT_EQ(epochs.steps_per_epoch, 15);
  EXPECT_EQ(epochs.steps, 30);
  EXPECT_EQ(epochs.last_batch, 37);
  EXPECT_EQ(epochs.batch_of(13), 100);
  EXPECT_EQ(epochs.batch_of(14), 37);
  EXPECT_EQ(epochs.batch_of(15), 100);
  flags.epochs = 0;
  flags.steps = 4;
  EXPECT_EQ(make_schedule(flags, data).steps, 4);
  flags.batch = 5000;
  EXPECT_EQ(make_schedule(flags, data).batch, 1437);
}

}  // namespace
}  // namespace tidemark
