#include "runtime/core/names.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "runtime/core/errors.h"
#include "runtime/core/listed.h"

namespace tidemark {
namespace {

TEST(Names, EqualTextIsOnePointer) {
  const std::string text = "layer1.0.conv1";
  const char* const name = intern(text);
  EXPECT_STREQ(name, "layer1.0.conv1");
  EXPECT_NE(name, text.c_str());
  EXPECT_EQ(intern("layer1.0.conv1"), name);
  EXPECT_NE(intern("layer1.0.conv2"), name);
}

TEST(Names, CallsBearThePathOfTheInnermostScope) {
  static constexpr const char* kOp = "conv2d";
  EXPECT_EQ(call_name(kOp), kOp);
  {
    const ScopedPath outer("layer1");
    EXPECT_STREQ(call_name(kOp), "layer1: conv2d");
    try {
      const ScopedPath inner("layer1.0");
      EXPECT_STREQ(call_name(kOp), "layer1.0: conv2d");
      EXPECT_EQ(call_name(kOp), call_name(kOp));
      throw 1;
    } catch (int) {
    }
    EXPECT_STREQ(call_name(kOp), "layer1: conv2d");
  }
  EXPECT_STREQ(current_path(), "");
}

TEST(Names, OutputsBearTheirNumberBeyondTheFirst) {
  const ScopedPath path("bn1");
  const char* const call = call_name("batch_norm");
  EXPECT_EQ(output_name(call, 0), call);
  EXPECT_STREQ(output_name(call, 1), "bn1: batch_norm, output 1");
  EXPECT_STREQ(output_name(call, 2), "bn1: batch_norm, output 2");
}

TEST(Names, ThereAreMoreThanAThreadRemembers) {
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 10'000; ++i) {
      const std::string path = "many." + std::to_string(i);
      const ScopedPath scope(intern(path));
      ASSERT_EQ(call_name("relu"), path + ": relu");
    }
  }
}

TEST(Names, EachThreadIsWhereItIs) {
  const ScopedPath here("here");
  std::thread([] {
    EXPECT_STREQ(current_path(), "");
    const ScopedPath there("there");
    EXPECT_STREQ(call_name("relu"), "there: relu");
  }).join();
  EXPECT_STREQ(call_name("relu"), "here: relu");
}

TEST(Names, MisuseSaysInWhichModule) {
  const ScopedPath path("layer3.2.conv1");
  EXPECT_STREQ(UsageError("[conv2d] no").what(), "[conv2d] no (in layer3.2.conv1)");
}

TEST(Listed, ControlCharactersArePrintedAsEscapes) {
  EXPECT_EQ(printable("conv1.weight"), "conv1.weight");
  EXPECT_EQ(printable("a\nb\x1b[31m\x7f"), "a\\nb\\x1b[31m\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\x9b31m");                                         // CSI as one character
  EXPECT_EQ(printable("\xc3\xa9\xc2\xa0"), "\xc3\xa9\xc2\xa0");  // e acute, no-break space
  EXPECT_EQ(printable("\xc2"), "\xc2");
}

// This test must be the last: the table stays full.
TEST(Names, AFullTableLeavesCallsWithTheNameOfTheirOperator) {
  const char* const before = intern("before");
  size_t kept = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::string longer = std::to_string(i) + std::string(1 << 16, 'x');
    kept += *intern(longer) ? longer.size() : 0;
  }
  EXPECT_GT(kept, kMaxNameBytes / 2);
  EXPECT_LE(kept, kMaxNameBytes);
  EXPECT_EQ(intern("before"), before);
  const ScopedPath path(before);
  const std::string op(1 << 16, 'y');
  EXPECT_EQ(call_name(op.c_str()), op.c_str());
}

}  // namespace
}  // namespace tidemark
