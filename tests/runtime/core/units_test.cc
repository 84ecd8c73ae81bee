#include "runtime/core/units.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "runtime/core/errors.h"

namespace tidemark {
namespace {

using literals::operator""_B;
using literals::operator""_KiB;
using literals::operator""_MiB;
using literals::operator""_GiB;

TEST(Units, DoNotMix) {
  static_assert(!std::is_convertible_v<int64_t, Bytes>);
  static_assert(!std::is_convertible_v<Bytes, Nanos>);
  static_assert(!std::is_convertible_v<Bytes, Offset>);
  static_assert(!std::is_invocable_v<std::plus<>, Bytes, Nanos>);
  static_assert(!std::is_invocable_v<std::plus<>, Offset, Offset>);
}

TEST(Units, Arithmetic) {
  EXPECT_EQ(3_KiB + 1_B, Bytes(3073));
  EXPECT_EQ(1_KiB - 2_KiB, Bytes(-1024));
  EXPECT_EQ(2 * 1_MiB, 1_MiB * 2);
  Bytes total = 1_GiB;
  total += 1_B;
  total -= 1_GiB;
  EXPECT_EQ(total, 1_B);
  EXPECT_LT(1_KiB, 1_MiB);
}

TEST(Units, OffsetsAndBytes) {
  const Offset start(512);
  EXPECT_EQ(start + 1_KiB, Offset(1536));
  EXPECT_EQ(start + 1_KiB - 1_KiB, start);
  EXPECT_EQ(Offset(1536) - start, 1_KiB);
}

TEST(Units, Align) {
  EXPECT_EQ(align_up(0_B), 0_B);
  EXPECT_EQ(align_up(1_B), kAlignment);
  EXPECT_EQ(align_up(512_B), 512_B);
  EXPECT_EQ(align_up(513_B), 1_KiB);
  EXPECT_EQ(align_up(5_B, 4_B), 8_B);
  EXPECT_EQ(align_down(511_B), 0_B);
  EXPECT_EQ(align_down(1023_B), 512_B);
  EXPECT_EQ(align_down(1024_B), 1024_B);
}

TEST(Units, Conversions) {
  EXPECT_DOUBLE_EQ(to_mib(1536_KiB), 1.5);
  EXPECT_DOUBLE_EQ(to_ms(Nanos(2'500'000)), 2.5);
  EXPECT_DOUBLE_EQ(to_seconds(Nanos(2'500'000'000)), 2.5);
}

TEST(FormatBytes, PicksTheUnit) {
  EXPECT_EQ(format_bytes(0_B), "0 B");
  EXPECT_EQ(format_bytes(1023_B), "1023 B");
  EXPECT_EQ(format_bytes(4_KiB), "4.0 KiB");
  EXPECT_EQ(format_bytes(312_MiB), "312.0 MiB");
  EXPECT_EQ(format_bytes(1536_MiB), "1.50 GiB");
  EXPECT_EQ(format_bytes(Bytes(-2048)), "-2.0 KiB");
}

TEST(ParseBytes, ReadsWhatPeopleWrite) {
  const std::array<std::pair<std::string_view, Bytes>, 11> cases{{{"0", 0_B},
                                                                  {"1073741824", 1_GiB},
                                                                  {"17b", 17_B},
                                                                  {"17 B", 17_B},
                                                                  {"1024MiB", 1_GiB},
                                                                  {"1.5GiB", 1536_MiB},
                                                                  {"512 KiB", 512_KiB},
                                                                  {"512 kib", 512_KiB},
                                                                  {"512 KIB ", 512_KiB},
                                                                  {"1e3", 1000_B},
                                                                  {"0.0001KiB", 0_B}}};
  for (const auto& [text, bytes] : cases) {
    SCOPED_TRACE(text);
    EXPECT_EQ(parse_bytes(text), bytes);
  }
}

// A budget printed by a program must be read back to the byte.
TEST(ParseBytes, WholeNumbersAreExactToFourPetabytes) {
  EXPECT_EQ(parse_bytes("85899345921"), Bytes(85899345921));
  EXPECT_EQ(parse_bytes("4503599627370497"), Bytes(4503599627370497));
}

TEST(ParseBytes, RefusesTheRest) {
  for (const char* text :
       {"", " ", "MiB", "-1", "-1GiB", "50%", "1.5.2", "12 parsecs", "1 2", "0x10", "inf",
        "nan", "1e300", "99999999999GiB", "9223372036854775808", "1MB"}) {
    SCOPED_TRACE(text);
    EXPECT_THROW(parse_bytes(text), UsageError);
  }
}

TEST(ParseBytes, ErrorQuotesTheText) {
  EXPECT_THAT([] { parse_bytes("12 parsecs"); },
              ::testing::ThrowsMessage<UsageError>(::testing::HasSubstr("'12 parsecs'")));
}

}  // namespace
}  // namespace tidemark
