#include "models/checksum.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string_view>

#include "models/nn/parameter_init.h"
#include "runtime/session/session.h"

namespace tidemark {
namespace {

std::string hex_of(std::string_view text) {
  Checksum checksum;
  checksum.add(std::as_bytes(std::span(text.data(), text.size())));
  return checksum.hex();
}

// From the reference page of the algorithm, isthe.com/chongo/tech/comp/fnv.
TEST(Checksum, IsFnv1a) {
  EXPECT_EQ(hex_of(""), "cbf29ce484222325");
  EXPECT_EQ(hex_of("a"), "af63dc4c8601ec8c");
  EXPECT_EQ(hex_of("foobar"), "85944171f73967e8");
}

TEST(Checksum, PiecesAreAsTheWhole) {
  Checksum checksum;
  for (const std::string_view piece : {"foo", "", "bar"}) {
    checksum.add(std::as_bytes(std::span(piece.data(), piece.size())));
  }
  EXPECT_EQ(checksum.hex(), hex_of("foobar"));
}

TEST(TensorsChecksum, SeesEveryBitAndTheOrder) {
  Session session({.device = "cpu", .threads = 1, .budget = Bytes(1 << 20)});
  const auto named = [](float value) {
    return NamedTensor{"x", upload_constant({3}, value, Category::kParameter, "x")};
  };
  const std::vector<NamedTensor> one{named(1)}, two{named(2)}, negative_zero{named(-0.0F)};
  const std::vector<NamedTensor> zero{named(0)};
  EXPECT_EQ(tensors_checksum({one, two}), tensors_checksum({one, two}));
  EXPECT_NE(tensors_checksum({one, two}), tensors_checksum({two, one}));
  EXPECT_NE(tensors_checksum({zero}), tensors_checksum({negative_zero}));

  const float values[3] = {1, 1, 1};
  Checksum expected;
  expected.add(std::as_bytes(std::span(values)));
  EXPECT_EQ(tensors_checksum({one}), expected.hex());
}

TEST(TensorsChecksum, NothingWithoutData) {
  Session session({.device = "sim:host"});
  const std::vector<NamedTensor> one{{"x", upload_constant({3}, 1, Category::kParameter, "x")}};
  EXPECT_EQ(tensors_checksum({one}), std::nullopt);
}

}  // namespace
}  // namespace tidemark
