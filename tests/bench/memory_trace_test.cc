#include "bench/memory_trace.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/models/data/files.h"
#include "tests/support/replaced.h"

namespace tidemark {
namespace {

using testing::data_error;
using testing::TempFolder;

constexpr std::string_view kGood =
    "tidemark-trace 1\n"
    "@ model a net\n"
    "+ 1000 p\n"
    "+ 512 a\n"
    "+ 0 w\n"
    "- 1\n"  // the one of 512
    "- 0\n"
    "end 5\n";

testing::ByteVector bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

// `text` with `old` replaced.
std::string with(const std::string& old, const std::string& now) {
  return testing::replaced(std::string(kGood), old, now);
}

TEST(MemoryTrace, ReadsWhatTheFormatSays) {
  const TempFolder folder;
  const MemoryTrace trace = read_trace(folder.write("t.txt", bytes_of(kGood)));
  EXPECT_EQ(trace.about, (std::map<std::string, std::string>{{"model", "a net"}}));
  const std::vector<TraceEvent> expected{
      {TraceEvent::kAllocate, Category::kParameter, 0, Bytes(1000)},
      {TraceEvent::kAllocate, Category::kActivation, 1, Bytes(512)},
      {TraceEvent::kAllocate, Category::kWorkspace, 2, Bytes(0)},
      {.kind = TraceEvent::kFree, .block = 1},
      {.kind = TraceEvent::kFree, .block = 2}};
  EXPECT_EQ(trace.events, expected);
  EXPECT_EQ(trace.blocks, 3);
  EXPECT_EQ(trace.max_live(), Bytes(1024 + 512 + 512));
}

TEST(MemoryTrace, WhatIsWrittenIsReadBackAndAlwaysTheSameBytes) {
  const TempFolder folder;
  const MemoryTrace trace = read_trace(folder.write("t.txt", bytes_of(kGood)));
  write_trace(trace, folder.path() + "/copy.txt");
  EXPECT_EQ(testing::read_bytes(folder.path() + "/copy.txt"), bytes_of(kGood));
  write_trace(trace, folder.path() + "/one.txt.gz");
  write_trace(trace, folder.path() + "/two.txt.gz");
  EXPECT_EQ(read_trace(folder.path() + "/one.txt.gz"), trace);
  EXPECT_EQ(testing::read_bytes(folder.path() + "/one.txt.gz"),
            testing::read_bytes(folder.path() + "/two.txt.gz"));
  EXPECT_THROW(write_trace(trace, folder.path() + "/none/t.txt"), DataError);
}

TEST(MemoryTrace, DamageIsFoundWhereItIs) {
  const TempFolder folder;
  const auto error_in = [&](const std::string& text) {
    const std::string path = folder.write("bad.txt", bytes_of(text));
    return data_error([&] { read_trace(path); }, path);
  };
  const auto line = [](std::string_view text) {
    return static_cast<int64_t>(kGood.find(text));
  };
  EXPECT_EQ(error_in(""), 0);
  EXPECT_EQ(error_in("P5 8 8\n"), 0);
  EXPECT_EQ(error_in(with("trace 1", "trace 2")), 0);
  EXPECT_EQ(error_in(with("@ model a net", "@ model")), line("@"));
  for (const char* bad :
       {"+ 512", "+ 512 ", "+ 512 x", "+ 512 aa", "+ -512 a", "+ 5e2 a", "+  512 a",
        "+ 9999999999999999 a", "+ 99999999999999999999 a", "* 1", "+", ""}) {
    EXPECT_EQ(error_in(with("+ 512 a", bad)), line("+ 512 a")) << bad;
  }
  for (const char* bad : {"- 3", "- -1", "- ", "- 1 2", "- x", "- 99999999999999999999"}) {
    EXPECT_EQ(error_in(with("- 1", bad)), line("- 1")) << bad;
  }
  EXPECT_EQ(error_in(with("+ 1000 p\n", "- 0\n")), line("+ 1000"));  // none is live yet
  EXPECT_EQ(error_in(with("end 5", "end 6")), line("end"));
  EXPECT_EQ(error_in(with("+ 0 w\n", "")), line("end") - 6);  // a line is lost
  EXPECT_EQ(error_in(std::string(kGood) + "+ 1 a\n"), static_cast<int64_t>(kGood.size()));
}

TEST(MemoryTrace, EveryTruncationIsNoticed) {
  const TempFolder folder;
  for (size_t n = 0; n < kGood.size(); ++n) {
    const std::string path = folder.write("cut.txt", bytes_of(kGood.substr(0, n)));
    EXPECT_LE(data_error([&] { read_trace(path); }, path), static_cast<int64_t>(n)) << n;
  }
  const testing::ByteVector packed = testing::gzip(bytes_of(kGood));
  for (size_t n = 0; n < packed.size(); ++n) {
    const std::string path = folder.write("cut.txt.gz", testing::first(packed, n));
    EXPECT_LE(data_error([&] { read_trace(path); }, path), static_cast<int64_t>(n)) << n;
  }
}

TEST(MemoryTrace, AFlippedBitInGzipDataIsNoticed) {
  const TempFolder folder;
  testing::ByteVector packed = testing::gzip(bytes_of(kGood));
  packed[packed.size() / 2] ^= 4;
  const std::string path = folder.write("bad.txt.gz", packed);
  data_error([&] { read_trace(path); }, path);
}

TEST(MemoryTrace, MissingFileIsAnError) {
  EXPECT_EQ(data_error([] { read_trace("/nowhere/t.txt"); }, "/nowhere/t.txt"), -1);
}

TEST(MemoryTrace, RecordedOnesAreWhole) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TIDEMARK_TRACES)) {
    if (entry.path().extension() != ".gz") continue;
    SCOPED_TRACE(entry.path());
    const MemoryTrace trace = read_trace(entry.path().string());
    EXPECT_GT(trace.events.size(), 1000U);
    const auto budget = trace.about.find("budget");
    const std::string limit =
        trace.about.at(budget == trace.about.end() ? "unmanaged_peak" : "budget");
    EXPECT_LE(trace.max_live().count(), std::stoll(limit));
    ++count;
  }
  EXPECT_GT(count, 0);
}

}  // namespace
}  // namespace tidemark
