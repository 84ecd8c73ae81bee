// Each check catches a small kernel that is wrong in its way, and lets its right neighbour
// pass.
#include <optional>
#include <span>

#include "tests/support/ptx/kernel_test.h"

namespace tidemark::ptx {
namespace {

struct CheckCase {
  const char* what;
  std::optional<Check> caught;  // nothing: the kernel is right
  const char* body;
  int threads = 64;
};

// NOLINTNEXTLINE(readability-identifier-naming): GoogleTest calls it
void PrintTo(const CheckCase& c, std::ostream* out) { *out << c.what; }

const CheckCase kRaceChecks[] = {
    {"a barrier between the write and another warp's read", std::nullopt,
     "st.shared.u32 [%d2], %r0; bar.sync 0; ld.shared.u32 %r4, [%d3];"},
    {"no barrier between the write and another warp's read", Check::kRace,
     "st.shared.u32 [%d2], %r0; bar.sync 0; st.shared.u32 [%d2], %r2; ld.shared.u32 %r4, "
     "[%d3];"},
    {"another warp writes before the reader's barrier", Check::kRace,
     "st.shared.u32 [%d2], %r0; bar.sync 0; ld.shared.u32 %r4, [%d3]; st.shared.u32 [%d2], "
     "%r4;"},
    {"two warps write one word", Check::kRace, "st.shared.u32 [s], %r0;"},
    {"bar.warp.sync between lanes of one warp", std::nullopt,
     "st.shared.u32 [%d2], %r0; bar.warp.sync -1; ld.shared.u32 %r4, [%d4];"},
    {"nothing between lanes of one warp", Check::kRace,
     "st.shared.u32 [%d2], %r0; ld.shared.u32 %r4, [%d4];"},
    {"a shuffle orders nothing", Check::kRace,
     "st.shared.u32 [%d2], %r0; shfl.sync.bfly.b32 %r5, %r0, 1, 31, -1; ld.shared.u32 %r4, "
     "[%d4];"},
    {"bar.warp.sync between the read and the next write", std::nullopt,
     "st.shared.u32 [%d2], %r0; bar.warp.sync -1; ld.shared.u32 %r4, [%d4]; bar.warp.sync -1;"
     "st.shared.u32 [%d2], %r4;"},
    {"one bar.warp.sync too few", Check::kRace,
     "st.shared.u32 [%d2], %r0; bar.warp.sync -1; ld.shared.u32 %r4, [%d4];"
     "st.shared.u32 [%d2], %r4;"},
    {"bar.warp.sync says nothing of other warps", Check::kRace,
     "st.shared.u32 [%d2], %r0; bar.sync 0; st.shared.u32 [%d2], %r2; bar.warp.sync -1;"
     "ld.shared.u32 %r4, [%d3];"},
    {"bar.warp.sync of other lanes", Check::kRace,
     "st.shared.u32 [%d2], %r0; setp.lt.u32 %p0, %r3, 2; @%p0 bar.warp.sync 3;"
     "ld.shared.u32 %r4, [%d4];",
     32},
    {"lanes of one instruction write one word", Check::kRace, "st.shared.u32 [s], %r0;", 32},
    {"neighbouring bytes are not the same bytes", std::nullopt,
     "cvt.u64.u32 %d6, %r0; add.u64 %d6, %d5, %d6; st.shared.u8 [%d6], %r0;"},
};
const CheckCase kMemoryChecks[] = {
    {"shared memory that nobody wrote", Check::kUnwrittenShared, "ld.shared.u32 %r4, [%d2];"},
    {"shared memory that another block wrote is not looked at here", std::nullopt,
     "st.shared.u32 [%d2], %r0; ld.shared.u32 %r4, [%d2];"},
    {"the last word of shared memory", std::nullopt, "st.shared.u32 [%d2], %r0;"},
    {"beyond shared memory", Check::kSharedBounds, "st.shared.u32 [%d2+4], %r0;"},
    {"before shared memory", Check::kSharedBounds, "st.shared.u32 [%d2+-4], %r0;"},
    {"beyond local memory", Check::kLocalBounds, "st.local.u32 [l+16], %r0;"},
    {"beyond the parameters", Check::kParamBounds, "ld.param.u64 %d6, [out+8];"},
    {"the last word of an input", std::nullopt, "ld.global.u32 %r4, [%d0];", 128},
    {"beyond an input", Check::kGlobalBounds, "ld.global.u32 %r4, [%d0+1024];"},
    {"a write to what may only be read", Check::kReadOnly, "st.global.u32 [%d0], %r0;"},
    {"a shared address taken for a global one", Check::kGlobalBounds,
     "st.shared.u32 [%d2], %r0; ld.global.u32 %r4, [%d2];"},
    {"a vector at its place", std::nullopt,
     "shl.b32 %r4, %r0, 2; and.b32 %r4, %r4, 31; mad.wide.u32 %d6, %r4, 4, 0;"
     "ld.param.u64 %d7, [in]; add.u64 %d6, %d6, %d7; ld.global.v4.u32 {%r5,%r6,%r7,%r8}, "
     "[%d6];"},
    {"a vector that is not aligned", Check::kMisaligned,
     "ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%d0];"},
    {"a word that is not aligned", Check::kMisaligned, "st.shared.u32 [%d2+2], %r0;"},
    {"a row of a matrix that is not aligned", Check::kMisaligned,
     "st.shared.u32 [%d2], %r0; bar.sync 0; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, "
     "[%d2];",
     32},
};
const CheckCase kWarpChecks[] = {
    {"a shuffle that half of its lanes miss", Check::kDiverged,
     "setp.lt.u32 %p0, %r0, 16; @%p0 bra SKIP; shfl.sync.bfly.b32 %r4, %r0, 1, 31, -1; SKIP:",
     32},
    {"a shuffle of those that are there", std::nullopt,
     "setp.lt.u32 %p0, %r0, 16; @%p0 bra SKIP;"
     "shfl.sync.bfly.b32 %r4, %r0, 1, 31, 0xFFFF0000; SKIP:",
     32},
    {"a shuffle with a lane that is not in the mask", Check::kDiverged,
     "shfl.sync.bfly.b32 %r4, %r0, 1, 31, 0xFFFF;", 32},
    {"a shuffle that reads a lane outside the mask", Check::kDiverged,
     "setp.lt.u32 %p0, %r0, 16; @!%p0 bra SKIP;"
     "shfl.sync.bfly.b32 %r4, %r0, 16, 31, 0xFFFF; SKIP:",
     32},
    {"a vote after lanes have exited", Check::kDiverged,
     "setp.lt.u32 %p0, %r0, 16; @%p0 exit; vote.sync.ballot.b32 %r4, %p0, -1;", 32},
    {"ldmatrix in half a warp", Check::kDiverged,
     "st.shared.u32 [%d2], %r0; bar.sync 0; setp.lt.u32 %p0, %r0, 16; @%p0 bra SKIP;"
     "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [s]; SKIP:",
     32},
    {"mma in half a warp", Check::kDiverged,
     "mov.b32 %r4, 0; mov.f32 %f0, 0f00000000; setp.lt.u32 %p0, %r0, 16; @%p0 bra SKIP;"
     "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1, %f2, %f3, %f4},"
     "{%r4, %r4, %r4, %r4}, {%r4, %r4}, {%f0, %f0, %f0, %f0}; SKIP:",
     32},
    {"bar.sync in half a warp", Check::kDiverged,
     "setp.lt.u32 %p0, %r0, 16; @%p0 bra SKIP; bar.sync 0; SKIP:"},
    {"bar.sync after a branch that lies behind it", std::nullopt,
     "setp.eq.u32 %p0, %r0, 0; @%p0 bra FAR; BACK: bar.sync 0; bra DONE;"
     "FAR: mov.u32 %r4, 1; bra BACK; DONE:"},
    {"bar.sync in one of two warps", Check::kBarrier,
     "setp.lt.u32 %p0, %r0, 32; @%p0 bra SKIP; bar.sync 0; SKIP:"},
    {"bar.sync that one of two warps is kept from", Check::kBarrier,
     "setp.lt.u32 %p0, %r0, 32; @!%p0 bar.sync 0;"},
    {"bar.sync after lanes have exited", Check::kBarrier,
     "setp.lt.u32 %p0, %r0, 16; @%p0 exit; bar.sync 0;"},
    {"bar.warp.sync that a lane never reaches", Check::kDiverged,
     "setp.eq.u32 %p0, %r0, 0; @%p0 bra SKIP; bar.warp.sync -1; SKIP:", 32},
    {"bar.warp.sync in two places of one warp", Check::kDiverged,
     "setp.lt.u32 %p0, %r0, 16; @%p0 bra ELSE; bar.warp.sync -1; bra DONE;"
     "ELSE: bar.warp.sync -1; DONE:",
     32},
};
const CheckCase kValueChecks[] = {
    {"a register that has no value", Check::kUndefined, "add.u32 %r4, %r10, 1;"},
    {"a register that has one in some lanes", Check::kUndefined,
     "setp.lt.u32 %p0, %r0, 16; @%p0 mov.u32 %r4, 1; add.u32 %r5, %r4, 1;"},
    {"a copy of no value, which nobody uses", std::nullopt, "mov.u32 %r4, %r10;"},
    {"a copy of no value, used", Check::kUndefined, "mov.u32 %r4, %r10; add.u32 %r5, %r4, 1;"},
    {"a value that only some lanes have, shuffled to all", std::nullopt,
     "setp.eq.u32 %p0, %r3, 1; @%p0 mov.u32 %r4, 1; shfl.sync.idx.b32 %r5, %r4, 0, 31, -1;"
     "add.u32 %r6, %r5, 1;",
     32},
    {"a lane's missing value, shuffled to all", Check::kUndefined,
     "setp.eq.u32 %p0, %r3, 1; @%p0 mov.u32 %r4, 1; shfl.sync.idx.b32 %r5, %r4, 1, 31, -1;"
     "add.u32 %r6, %r5, 1;",
     32},
    {"a predicate that has no value", Check::kUndefined, "@%p1 mov.u32 %r4, 1;"},
    {"a division by zero", Check::kDivision, "sub.u32 %r4, %r0, 5; div.u32 %r5, %r0, %r4;"},
    {"a loop that does not end", Check::kEndless, "LOOP: bra LOOP;", 32},
    {"a trap", Check::kTrap, "setp.eq.u32 %p0, %r0, 7; @%p0 trap;"},
};

class Checks : public ::testing::TestWithParam<CheckCase> {};

TEST_P(Checks, CatchWhatIsWrong) {
  const CheckCase& c = GetParam();
  std::optional<Check> caught;
  std::string message;
  try {
    run_body(kPrologue + c.body, c.threads);
  } catch (const Violation& violation) {
    caught = violation.check();
    message = violation.what();
  }
  EXPECT_EQ(caught, c.caught) << c.what << "\n" << message;
}

std::string name(const ::testing::TestParamInfo<CheckCase>& info) {
  return std::to_string(info.index);
}

INSTANTIATE_TEST_SUITE_P(Races, Checks, ::testing::ValuesIn(kRaceChecks), name);
INSTANTIATE_TEST_SUITE_P(Memory, Checks, ::testing::ValuesIn(kMemoryChecks), name);
INSTANTIATE_TEST_SUITE_P(Warps, Checks, ::testing::ValuesIn(kWarpChecks), name);
INSTANTIATE_TEST_SUITE_P(Values, Checks, ::testing::ValuesIn(kValueChecks), name);

TEST(Violations, NameKernelLineThreadAndAddress) {
  try {
    run_body("st.shared.u32 [s+256], %r0;");
    FAIL();
  } catch (const Violation& violation) {
    EXPECT_STREQ(violation.what(),
                 "[shared memory bounds] test\n"
                 "  test.ptx:20: st.shared.u32 [s+256], %r0\n"
                 "  block 0, thread 0: shared byte 256 of 256");
  }
}

// The check that a launch of `text` violates.
std::optional<Check> launch_check(std::span<const Argument> arguments, const Extents& threads) {
  Module module("launch.ptx", R"(
.entry launch(.param .u32 a, .param .align 8 .b8 b[24]) .maxntid 64, 1, 1
{
  ret;
})");
  try {
    launch(module.kernel("launch"), {}, threads, arguments, {});
  } catch (const Violation& violation) {
    return violation.check();
  }
  return std::nullopt;
}

TEST(Launches, CompareArgumentsWithParameters) {
  struct alignas(8) {
    std::byte bytes[64];
  } memory{};
  std::byte* const at = memory.bytes;
  const auto check = [](const std::vector<Argument>& arguments) {
    return launch_check(arguments, {64});
  };
  EXPECT_EQ(check({{at, 4}, {at + 8, 24}}), std::nullopt);
  EXPECT_EQ(check({{at}, {at + 8}}), std::nullopt);
  EXPECT_EQ(check({{at, 4}}), Check::kParameters) << "one argument too few";
  EXPECT_EQ(check({{at, 8}, {at + 8, 24}}), Check::kParameters) << "a size that differs";
  EXPECT_EQ(check({{at}, {at + 4}}), Check::kParameters) << "not aligned";
  EXPECT_EQ(check({{at + 24}, {at + 8}}), Check::kParameters) << "smaller than declared";
}

TEST(Launches, CompareTheBlockWithItsBounds) {
  struct alignas(8) {
    std::byte bytes[64];
  } memory{};
  const std::vector<Argument> arguments{{memory.bytes}, {memory.bytes + 8}};
  EXPECT_EQ(launch_check(arguments, {65}), Check::kLaunchShape);
  EXPECT_EQ(launch_check(arguments, {0}), Check::kLaunchShape);
  EXPECT_EQ(launch_check(arguments, {8, 8}), std::nullopt);
}

// Each thread writes a word at its end of `s`, which is declared, and one of `more`.
TEST(Launches, AddSharedMemoryBehindWhatIsDeclared) {
  const std::string text = ".extern .shared .align 16 .b8 more[];\n" + kernel_text(R"(
  mov.u64 %d5, s;
  mov.u64 %d6, more;
  mad.wide.u32 %d5, %r0, 4, %d5;
  mad.wide.u32 %d6, %r0, 4, %d6;
  st.shared.u32 [%d5+128], %r0;
  add.u32 %r4, %r0, 100;
  st.shared.u32 [%d6], %r4;
  ld.shared.u32 %r5, [%d5+128];
  ld.shared.u32 %r6, [%d6];
  mad.lo.u32 %r7, %r5, 1000, %r6;
  st.global.u32 [%d1], %r7;)");
  const auto check = [&](int64_t shared) -> std::optional<Check> {
    Words words;
    try {
      run_text(text, words, 32, shared);
    } catch (const Violation& violation) {
      return violation.check();
    }
    EXPECT_EQ(words.out[31], 31131U);
    return std::nullopt;
  };
  EXPECT_EQ(check(128), std::nullopt);
  EXPECT_EQ(check(124), Check::kSharedBounds);
  EXPECT_EQ(check((99 << 10) - 256), std::nullopt) << "what every GPU has";
  EXPECT_EQ(check((99 << 10) - 255), Check::kLaunchShape);
}

}  // namespace
}  // namespace tidemark::ptx
