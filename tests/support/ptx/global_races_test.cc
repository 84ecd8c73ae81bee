// Two blocks of 64 threads; each case is a body, and whether it races. %r1 is the block's
// number, %d2 the address of `out`, which holds a word for each thread, %d3 that of another
// warp's word, and %d4 that of a mark.
#include <optional>

#include "tests/support/ptx/kernel_test.h"

namespace tidemark::ptx {
namespace {

std::optional<Check> check_of(const std::string& body, uint32_t blocks, bool watched = true) {
  const std::string prologue = R"(
  mov.u32 %r1, %ctaid.x;
  setp.eq.u32 %p0, %r1, 0;
  setp.eq.u32 %p1, %r0, 0;
  ld.param.u64 %d2, [out];
  add.u64 %d4, %d2, 508;
  sub.u32 %r2, 63, %r0;
  mad.wide.u32 %d3, %r2, 4, %d2;
)";
  Words words;
  Module module("test.ptx", kernel_text(prologue + body));
  GlobalMemory memory;
  memory.add(words.out.data(), sizeof words.out, true, "out");
  if (watched) memory.watch_races();
  const void* const in = words.in.data();
  const void* const out = words.out.data();
  const std::vector<Argument> arguments{{&in, 8}, {&out, 8}};
  try {
    launch(module.kernel("test"), {blocks}, {64}, arguments, memory, 0);
  } catch (const Violation& violation) {
    return violation.check();
  }
  return std::nullopt;
}

TEST(GlobalRaces, WithinABlock) {
  const std::string write = "st.global.u32 [%d1], %r0;", read = "ld.global.u32 %r4, [%d3];";
  EXPECT_EQ(check_of(write + "bar.sync 0;" + read, 1), std::nullopt);
  EXPECT_EQ(check_of(write + read, 1), Check::kGlobalRace);
  EXPECT_EQ(check_of(write + read, 1, false), std::nullopt) << "nobody watches";
  EXPECT_EQ(check_of(read + "bar.sync 0;" + write, 1), std::nullopt);
  EXPECT_EQ(check_of(read + write, 1), Check::kGlobalRace);
  EXPECT_EQ(check_of("st.global.u32 [%d2], %r0;", 1), Check::kGlobalRace) << "two writers";
  EXPECT_EQ(check_of("st.volatile.global.u32 [%d2], %r0;", 1), std::nullopt);
  EXPECT_EQ(check_of("red.global.add.u32 [%d2], 1;", 1), std::nullopt);
  EXPECT_EQ(check_of("ld.global.u32 %r4, [%d1]; st.global.u32 [%d1], %r4;", 1), std::nullopt);
}

// Block 0 reads the words and block 1 writes them. Thread 0 stores the mark and loads it.
TEST(GlobalRaces, BetweenBlocks) {
  const auto check = [](const std::string& before_mark, const std::string& after_load) {
    return check_of("@!%p0 bra SECOND; ld.global.u32 %r4, [%d3];" + before_mark +
                        "@%p1 st.volatile.global.u32 [%d4], %r1; bra DONE; SECOND:"
                        "@%p1 ld.volatile.global.u32 %r4, [%d4];" +
                        after_load + "st.global.u32 [%d1], %r0; DONE:",
                    2);
  };
  const std::string barrier = "bar.sync 0;", fence = "@%p1 membar.gl;";
  EXPECT_EQ(check(barrier + fence, fence + barrier), std::nullopt);
  EXPECT_EQ(check(fence, fence + barrier), Check::kGlobalRace) << "others still read";
  EXPECT_EQ(check(barrier, fence + barrier), Check::kGlobalRace) << "the mark comes early";
  EXPECT_EQ(check(fence + barrier, fence + barrier), Check::kGlobalRace) << "as before";
  EXPECT_EQ(check(barrier + fence, fence), Check::kGlobalRace) << "others did not wait";
  EXPECT_EQ(check(barrier + fence, barrier), Check::kGlobalRace) << "the mark is read late";
  EXPECT_EQ(check(barrier + "@%p1 membar.cta;", fence + barrier), Check::kGlobalRace);
  EXPECT_EQ(check_of("st.global.u32 [%d1], %r0;", 2), Check::kGlobalRace) << "no mark";
}

}  // namespace
}  // namespace tidemark::ptx
