// What is wrong with asynchronous copies is caught, and what is right next to it passes.
#include <array>
#include <cstddef>
#include <optional>
#include <string>

#include "tests/support/ptx/kernel_test.h"

namespace tidemark::ptx {
namespace {

const std::string kFill = "st.shared.u32 [%d2], %r0; bar.sync 0;";
const std::string kStart = "cp.async.ca.shared.global [%d2], [%d0], 4;";
const std::string kCommit = "cp.async.commit_group;";
const std::string kWait = "cp.async.wait_all;";
const std::string kBarrier = "bar.sync 0;";
const std::string kWarpBarrier = "bar.warp.sync -1;";
// Shared memory as kPrologue names it.
const std::string kOwn = "[%d2]", kOtherWarp = "[%d3]", kNeighbour = "[%d4]";

std::string read(const std::string& place) { return "ld.shared.u32 %r4, " + place + ";"; }
std::string write(const std::string& place) { return "st.shared.u32 " + place + ", %r0;"; }

// The check that a kernel violates.
std::optional<Check> caught(const std::string& body, int threads = 64) {
  try {
    run_body(kPrologue + body, threads);
  } catch (const Violation& violation) {
    return violation.check();
  }
  return std::nullopt;
}

TEST(AsyncCopies, AreReadAfterAWaitAndABarrier) {
  EXPECT_EQ(caught(kStart + kWait + read(kOwn)), std::nullopt);
  EXPECT_EQ(caught(kStart + kWait + kBarrier + read(kOtherWarp)), std::nullopt);
  EXPECT_EQ(caught(kStart + kWait + kWarpBarrier + read(kNeighbour)), std::nullopt);
}

TEST(AsyncCopies, AreNotReadWithoutTheBarrier) {
  EXPECT_EQ(caught(kStart + kWait + read(kNeighbour)), Check::kRace);
  EXPECT_EQ(caught(kFill + kStart + kWait + read(kOtherWarp)), Check::kRace);
  EXPECT_EQ(caught(kFill + kStart + kWait + kWarpBarrier + read(kOtherWarp)), Check::kRace);
  // A barrier before the wait does not order what comes after it.
  EXPECT_EQ(caught(kStart + kBarrier + kWait + read(kNeighbour), 32), Check::kRace);
  EXPECT_EQ(caught(kStart + kWarpBarrier + kWait + read(kNeighbour)), Check::kRace);
}

TEST(AsyncCopies, AreNotReadWithoutTheWait) {
  EXPECT_EQ(caught(kStart + read(kOwn) + kWait), Check::kCopy);
  EXPECT_EQ(caught(kStart + kBarrier + read(kOwn) + kWait), Check::kCopy);
  EXPECT_EQ(caught(kStart + kBarrier + read(kOtherWarp) + kWait), Check::kCopy);
  EXPECT_EQ(caught(kStart + kWarpBarrier + read(kNeighbour) + kWait), Check::kCopy);
  EXPECT_EQ(caught(kFill + kStart + read(kOwn) + kWait), Check::kCopy) << "an older value";
  EXPECT_EQ(caught(kFill + kStart + read(kNeighbour) + kWait), Check::kRace);
}

TEST(AsyncCopies, HaveTheirPlaceToThemselves) {
  EXPECT_EQ(caught(kStart + write(kOwn) + kWait), Check::kCopy);
  EXPECT_EQ(caught(kStart + write(kNeighbour) + kWait), Check::kRace);
  EXPECT_EQ(caught(kStart + kBarrier + write(kOtherWarp) + kBarrier + kWait), Check::kCopy);
  EXPECT_EQ(caught(kStart + kStart + kWait), Check::kCopy);
  EXPECT_EQ(caught(kStart + kWait + kStart + kWait), std::nullopt);
  EXPECT_EQ(caught("cp.async.ca.shared.global [s], [%d0], 4;" + kWait, 32), Check::kRace)
      << "lanes of one instruction";
}

TEST(AsyncCopies, StartAfterABarrierBehindReadersAndWriters) {
  const std::string copy = kStart + kWait;
  EXPECT_EQ(caught(kFill + read(kOtherWarp) + copy), Check::kRace);
  EXPECT_EQ(caught(kFill + read(kOtherWarp) + kBarrier + copy), std::nullopt);
  EXPECT_EQ(caught(kFill + read(kNeighbour) + copy), Check::kRace);
  EXPECT_EQ(caught(kFill + read(kNeighbour) + kWarpBarrier + copy), std::nullopt);
  EXPECT_EQ(caught(write(kNeighbour) + copy), Check::kRace);
  EXPECT_EQ(caught(write(kNeighbour) + kWarpBarrier + copy), std::nullopt);
  EXPECT_EQ(caught(kFill + read(kOwn) + copy), std::nullopt);
}

TEST(AsyncCopies, AreWaitedForInGroups) {
  const std::string wait_1 = "cp.async.wait_group 1;", wait_0 = "cp.async.wait_group 0;";
  EXPECT_EQ(caught(kStart + kCommit + wait_0 + read(kOwn)), std::nullopt);
  EXPECT_EQ(caught(kStart + kCommit + wait_1 + read(kOwn) + kWait), Check::kCopy);
  EXPECT_EQ(caught(kStart + kCommit + kCommit + wait_1 + read(kOwn)), std::nullopt)
      << "an empty group is one too";
  EXPECT_EQ(caught(kStart + wait_0 + read(kOwn) + kWait), Check::kCopy) << "in no group";
}

TEST(AsyncCopies, AreWaitedForByTheirThread) {
  EXPECT_EQ(caught(kStart), Check::kCopy);
  EXPECT_EQ(caught(kStart + "setp.ne.u32 %p0, %r0, 9; @%p0 " + kWait), Check::kCopy);
  EXPECT_EQ(caught("setp.ne.u32 %p0, %r0, 9; @%p0 " + kStart + "@%p0 " + kWait), std::nullopt);
}

TEST(AsyncCopies, AreAligned) {
  const std::string eights =
      "mad.wide.u32 %d6, %r0, 8, %d5; ld.param.u64 %d7, [in];"
      "mad.wide.u32 %d7, %r0, 8, %d7;";
  const auto copy = [&](const std::string& operands) {
    return caught(eights + "cp.async.ca.shared.global " + operands + ";" + kWait, 32);
  };
  EXPECT_EQ(copy("[%d6], [%d7], 8"), std::nullopt);
  EXPECT_EQ(copy("[%d6], [%d7+4], 8, 4"), Check::kMisaligned);
  EXPECT_EQ(copy("[%d6], [%d7+4], 8, 0"), Check::kMisaligned);
  EXPECT_EQ(copy("[%d6+4], [%d7], 8"), Check::kMisaligned);
}

TEST(AsyncCopies, StayWithinSharedMemory) {
  const std::string copy = "cp.async.ca.shared.global [%d2+4], [%d0], 4;";
  EXPECT_EQ(caught(copy + kWait, 63), std::nullopt);
  EXPECT_EQ(caught(copy + kWait, 64), Check::kSharedBounds);
}

// One thread copies 16 bytes from byte 16 of an input of 20 bytes.
std::optional<Check> caught_at_the_end(const std::string& read) {
  Module module("end.ptx", R"(
.entry end(.param .u64 in) {
  .reg .b64 %d<2>;
  .shared .align 16 .b8 s[16];
  ld.param.u64 %d0, [in];
  mov.u64 %d1, s;
  cp.async.cg.shared.global [%d1], [%d0+16], 16)" +
                               read + R"(;
  cp.async.wait_all;
})");
  alignas(16) std::array<std::byte, 32> in{};
  GlobalMemory memory;
  memory.add(in.data(), 20, false, "in");
  const void* const address = in.data();
  const Argument argument{&address, 8};
  try {
    launch(module.kernel("end"), {}, {1}, {&argument, 1}, memory);
  } catch (const Violation& violation) {
    return violation.check();
  }
  return std::nullopt;
}

TEST(AsyncCopies, ReadNoMoreThanTheyAreTold) {
  EXPECT_EQ(caught_at_the_end(", 4"), std::nullopt);
  EXPECT_EQ(caught_at_the_end(", 5"), Check::kGlobalBounds);
  EXPECT_EQ(caught_at_the_end(""), Check::kGlobalBounds);
  EXPECT_EQ(caught_at_the_end(", 17"), Check::kCopy) << "more than it copies";
  const std::string beyond = "cp.async.ca.shared.global [%d2], [%d0+1024], 4";
  EXPECT_EQ(caught(beyond + ", 0;" + kWait), std::nullopt);
  EXPECT_EQ(caught(beyond + ", 1;" + kWait), Check::kGlobalBounds);
}

TEST(AsyncCopies, AreNamedByThreadAndByLine) {
  const auto message = message_of<Violation>;
  const std::string copy =
      "setp.eq.u32 %p0, %r0, 9; @%p0 cp.async.ca.shared.global [s], [%d0],"
      " 4;";
  EXPECT_EQ(message(copy),
            "[asynchronous copy] test\n"
            "  test.ptx:20: @%p0 cp.async.ca.shared.global [s], [%d0], 4\n"
            "  block 0, thread 9: has ended without waiting for this copy");
  EXPECT_EQ(message(copy + "bar.sync 0;\n @!%p0 ld.shared.u32 %r4, [s];"),
            "[asynchronous copy] test\n"
            "  test.ptx:21: @!%p0 ld.shared.u32 %r4, [s]\n"
            "  block 0, thread 0: shared byte 0: thread 9 copies to it and has not waited for "
            "the end");
}

}  // namespace
}  // namespace tidemark::ptx
