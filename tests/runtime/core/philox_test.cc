#include "runtime/core/philox.h"

#include <gtest/gtest.h>

namespace tidemark {
namespace {

using Words = std::array<uint32_t, 4>;

// The known answers that Random123 ships (kat_vectors, philox4x32 with 10 rounds).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(
      philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
      (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(
      philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
      (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, RunsAtCompileTime) {
  static_assert(philox4x32({0, 0, 0, 0}, {0, 0})[0] == 0x6627e8d5);
  static_assert(philox_key(0x1122334455667788)[0] == 0x55667788);
  static_assert(philox_key(0x1122334455667788)[1] == 0x11223344);
}

TEST(Philox, UniformStaysBelowOne) {
  EXPECT_EQ(uniform_float(0), 0.0f);
  EXPECT_EQ(uniform_float(0x80000000), 0.5f);
  EXPECT_LT(uniform_float(0xffffffff), 1.0f);
}

}  // namespace
}  // namespace tidemark
