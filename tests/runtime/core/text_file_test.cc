#include "runtime/core/text_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>

#include "runtime/core/errors.h"
#include "tests/models/data/files.h"

namespace tidemark {
namespace {

using ::testing::HasSubstr;

std::string error_of(const std::string& path, Bytes limit) {
  try {
    read_text_file(path, limit);
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

TEST(TextFileTest, AllOfItUpToTheLimit) {
  const testing::TempFolder folder;
  const std::string path = folder.write("text", {'a', '\r', '\n', 0, 'b'});
  EXPECT_EQ(read_text_file(path, Bytes(5)), std::string("a\r\n\0b", 5));
  EXPECT_THAT(error_of(path, Bytes(4)), HasSubstr("is longer than 4 B"));
  EXPECT_EQ(read_text_file(folder.write("empty", {}), Bytes(0)), "");
}

TEST(TextFileTest, DecompressesGzip) {
  const testing::TempFolder folder;
  testing::ByteVector packed = testing::gzip(testing::ByteVector(1000, 'x'));
  const std::string path = folder.write("text.gz", packed);
  EXPECT_EQ(read_text_file(path), std::string(1000, 'x'));
  EXPECT_THAT(error_of(path, Bytes(999)), HasSubstr("is longer than 999 B"));
  testing::ByteVector damaged = packed;
  damaged[packed.size() - 6] ^= 1;  // of the checksum
  const std::string flipped = folder.write("flipped.gz", damaged);
  EXPECT_THAT(error_of(flipped, Bytes(1000)), HasSubstr(": incorrect data check"));
  EXPECT_EQ(error_of(flipped, Bytes(1000)).find(flipped, 1), std::string::npos);
  packed.resize(packed.size() - 5);
  EXPECT_THAT(error_of(folder.write("cut.gz", packed), Bytes(1000)), HasSubstr("is truncated"));
  EXPECT_THAT(error_of(folder.write("plain.gz", {'{', '}'}), Bytes(9)),
              HasSubstr("not compressed"));
  packed = testing::gzip({'a'});
  packed.insert(packed.end(), 20, 'b');
  EXPECT_THAT(error_of(folder.write("more.gz", packed), Bytes(9)), HasSubstr("damaged"));
}

TEST(TextFileTest, ReadsAPipe) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  ASSERT_EQ(write(ends[1], "text", 4), 4);
  close(ends[1]);
  EXPECT_EQ(read_text_file("/dev/fd/" + std::to_string(ends[0]), Bytes(4)), "text");
  close(ends[0]);
}

TEST(TextFileTest, WhatIsNoFileIsSaid) {
  const testing::TempFolder folder;
  EXPECT_THAT(error_of(folder.path() + "/none", Bytes(9)), HasSubstr("No such file"));
  EXPECT_THAT(error_of(folder.path(), Bytes(9)), HasSubstr("is a folder"));
  EXPECT_THAT(error_of("/dev/zero", Bytes(9)), HasSubstr("is longer than 9 B"));
}

}  // namespace
}  // namespace tidemark
