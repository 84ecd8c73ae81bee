#include "runtime/core/errors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <type_traits>

namespace tidemark {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Errors, DataErrorNamesFileAndOffset) {
  const DataError error("train-images", 16, "truncated");
  EXPECT_EQ(error.file(), "train-images");
  EXPECT_EQ(error.offset(), 16);
  EXPECT_STREQ(error.what(), "train-images, byte 16: truncated");
}

TEST(Errors, AFileAsAWholeHasNoByte) {
  const DataError error("/dev/null", "is a device");
  EXPECT_STREQ(error.what(), "/dev/null: is a device");
  EXPECT_EQ(error.offset(), -1);
}

TEST(Errors, InfeasibleBudgetSaysWhatWouldDo) {
  const InfeasibleBudget error(Bytes(1024), Bytes(3 << 20));
  EXPECT_EQ(error.budget(), Bytes(1024));
  EXPECT_EQ(error.minimum(), Bytes(3 << 20));
  EXPECT_THAT(error.what(), AllOf(HasSubstr("1024 bytes"), HasSubstr("1.0 KiB"),
                                  HasSubstr("3145728 bytes"), HasSubstr("3.0 MiB")));
}

TEST(Errors, OutOfMemoryCarriesTheNumbers) {
  const OutOfMemory error("[conv2d] no room", Bytes(4096), Bytes(2048));
  EXPECT_EQ(error.requested(), Bytes(4096));
  EXPECT_EQ(error.budget(), Bytes(2048));
}

TEST(Errors, AllButBrokenInvariantsAreOneFamily) {
  EXPECT_THROW(throw UsageError("x"), Error);
  EXPECT_THROW(throw DeviceError("x"), Error);
  EXPECT_THROW(throw DataError("f", 0, "x"), Error);
  EXPECT_THROW(throw InfeasibleBudget(Bytes(1), Bytes(2)), Error);
  EXPECT_THROW(throw OutOfMemory("x", Bytes(1), Bytes(2)), Error);
  static_assert(!std::is_base_of_v<Error, std::logic_error>);
}

TEST(Check, NamesPlaceConditionAndReason) {
  const int blocks = -1;
  EXPECT_THAT([&] { TIDEMARK_CHECK(blocks >= 0, "free list of 512 bytes"); },
              ThrowsMessage<std::logic_error>(AllOf(HasSubstr("errors_test.cc:"),
                                                    HasSubstr("blocks >= 0"),
                                                    HasSubstr("free list of 512 bytes"))));
}

TEST(Check, EvaluatesTheConditionOnceAndTheMessageNever) {
  int conditions = 0;
  int messages = 0;
  auto message = [&] { return ++messages, std::string(); };
  TIDEMARK_CHECK(++conditions == 1, message());
  EXPECT_EQ(conditions, 1);
  EXPECT_EQ(messages, 0);
}

}  // namespace
}  // namespace tidemark
