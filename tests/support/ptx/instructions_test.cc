// Checks each instruction on one line of PTX, which leaves a value in %r1 of thread 5.
#include <bit>

#include "tests/support/ptx/kernel_test.h"

namespace tidemark::ptx {
namespace {

struct InstructionCase {
  const char* body;
  uint32_t expected;
};

uint32_t bits(float x) { return std::bit_cast<uint32_t>(x); }

class Instructions : public ::testing::TestWithParam<InstructionCase> {};

TEST_P(Instructions, LeavesTheValueThatTheIsaStates) {
  const Words words = run_body(std::string(GetParam().body) + "\n st.global.u32 [%d1], %r1;");
  EXPECT_EQ(words.out[5], GetParam().expected) << GetParam().body;
}

const InstructionCase kIntegers[] = {
    {"add.s32 %r1, %r0, -7;", 0xFFFFFFFE},
    {"sub.u32 %r1, 3, %r0;", 0xFFFFFFFE},
    {"mul.lo.s32 %r1, %r0, -3;", 0xFFFFFFF1},
    {"mul.hi.u32 %r1, %r0, 0x80000000;", 2},
    {"mul.hi.s32 %r1, %r0, -1;", 0xFFFFFFFF},
    {"mul.wide.s32 %d2, %r0, -1; shr.u64 %d2, %d2, 32; cvt.u32.u64 %r1, %d2;", 0xFFFFFFFF},
    {"cvt.u16.u32 %h0, %r0; mul.wide.u16 %r1, %h0, 0x4000;", 0x14000},
    {"mad.lo.s32 %r1, %r0, %r0, 100;", 125},
    {"mov.u32 %r2, 5; div.s32 %r1, -7, %r2;", 0xFFFFFFFF},
    {"mov.u32 %r2, 5; rem.s32 %r1, -7, %r2;", 0xFFFFFFFE},
    {"mov.u32 %r2, 5; div.u32 %r1, 0xFFFFFFF9, %r2;", 858993457},
    {"mov.u32 %r2, 0x80000000; div.s32 %r1, %r2, -1;", 0x80000000},
    {"mov.u32 %r2, 0x80000000; rem.s32 %r1, %r2, -1;", 0},
    {"min.s32 %r1, %r0, -1;", 0xFFFFFFFF},
    {"min.u32 %r1, %r0, -1;", 5},
    {"max.s32 %r1, %r0, -1;", 5},
    {"neg.s32 %r1, %r0;", 0xFFFFFFFB},
    {"mov.u32 %r2, -5; abs.s32 %r1, %r2;", 5},
};
const InstructionCase kBits[] = {
    {"and.b32 %r1, %r0, 6;", 4},
    {"or.b32 %r1, %r0, 6;", 7},
    {"xor.b32 %r1, %r0, 6;", 3},
    {"not.b32 %r1, %r0;", 0xFFFFFFFA},
    {"shl.b32 %r1, %r0, 30;", 0x40000000},
    {"shl.b32 %r1, %r0, 32;", 0},
    {"mov.u32 %r2, -8; shr.s32 %r1, %r2, 1;", 0xFFFFFFFC},
    {"mov.u32 %r2, -8; shr.s32 %r1, %r2, 40;", 0xFFFFFFFF},
    {"mov.u32 %r2, -8; shr.u32 %r1, %r2, 28;", 0xF},
    {"shf.l.wrap.b32 %r1, 0x80000000, %r0, 1;", 11},
    {"shf.r.wrap.b32 %r1, %r0, 1, 1;", 0x80000002},
    {"bfi.b32 %r1, %r0, 0xFFFFFFFF, 4, 8;", 0xFFFFF05F},
    {"mov.u32 %r2, 0x00F0; bfe.u32 %r1, %r2, 4, 4;", 0xF},
    {"mov.u32 %r2, 0x00F0; bfe.s32 %r1, %r2, 4, 4;", 0xFFFFFFFF},
    {"mov.u32 %r2, 0x44332211; prmt.b32 %r1, %r2, 0, 0x0123;", 0x11223344},
    {"mov.u32 %r2, 0x80; prmt.b32 %r1, %r2, 0, 0x8888;", 0xFFFFFFFF},
    {"popc.b32 %r1, %r0;", 2},
    {"clz.b32 %r1, %r0;", 29},
    {"brev.b32 %r1, %r0;", 0xA0000000},
    {"setp.gt.s32 %p0, %r0, 3; not.pred %p1, %p0; selp.b32 %r1, 1, 2, %p1;", 2},
};
const InstructionCase kMoves[] = {
    {"mov.b64 %d2, {%r0, %r0}; shr.u64 %d2, %d2, 32; cvt.u32.u64 %r1, %d2;", 5},
    {"mov.b32 %r2, 0x00070009; mov.b32 {%h0, %h1}, %r2; cvt.u32.u16 %r1, %h1;", 7},
    {"setp.lt.u32 %p0, %r0, 6; selp.b32 %r1, 1, 2, %p0;", 1},
    {"setp.lt.s32 %p0|%p1, %r0, 6; selp.b32 %r1, 1, 2, %p1;", 2},
    {"setp.eq.s32 %p0, %r0, 5; setp.lt.and.s32 %p1, %r0, 5, %p0; selp.b32 %r1, 1, 2, %p1;", 2},
    {"setp.hi.u32 %p0, %r0, 0xFFFFFFFF; selp.b32 %r1, 1, 2, %p0;", 2},
    {"mov.f32 %f0, 0f7FC00000; setp.ne.f32 %p0, %f0, %f0; selp.b32 %r1, 1, 2, %p0;", 2},
    {"mov.f32 %f0, 0f7FC00000; setp.neu.f32 %p0, %f0, %f0; selp.b32 %r1, 1, 2, %p0;", 1},
    {"mov.f32 %f0, 0f7FC00000; setp.num.f32 %p0, %f0, 0f00000000; selp.b32 %r1, 1, 2, %p0;", 2},
    {"mov.u32 %r1, 9; setp.eq.s32 %p0, %r0, 5; @!%p0 mov.u32 %r1, 8; @%p0 mov.u32 %r1, 7;", 7},
    {"mov.u32 %r1, %ntid.x;", 32},
    {"mov.u32 %r1, %lanemask_lt;", 0x1F},
};
const InstructionCase kConversions[] = {
    {"cvt.s64.s32 %d2, -1; shr.u64 %d2, %d2, 60; cvt.u32.u64 %r1, %d2;", 0xF},
    {"mov.u32 %r2, 0x1FF; cvt.u16.u32 %h0, %r2; cvt.u32.u16 %r1, %h0;", 0x1FF},
    {"mov.u32 %r2, 0x1FF; cvt.s32.s8 %r1, %r2;", 0xFFFFFFFF},
    {"cvt.rn.f32.s32 %f0, -3; mov.b32 %r1, %f0;", bits(-3)},
    {"mov.f32 %f0, 0fC0200000; cvt.rni.s32.f32 %r1, %f0;", 0xFFFFFFFE},
    {"mov.f32 %f0, 0fC0200000; cvt.rzi.f32.f32 %f1, %f0; mov.b32 %r1, %f1;", bits(-2)},
    {"mov.f32 %f0, 0f7F800000; cvt.rzi.s32.f32 %r1, %f0;", 0x7FFFFFFF},
    {"mov.f32 %f0, 0f7FC00000; cvt.rzi.s32.f32 %r1, %f0;", 0},
    {"mov.f32 %f0, 0fBF800000; cvt.rzi.u32.f32 %r1, %f0;", 0},
    {"mov.f32 %f0, 0f40000000; cvt.sat.f32.f32 %f1, %f0; mov.b32 %r1, %f1;", bits(1)},
    {"mov.f32 %f0, 0f3F801000; cvt.rna.tf32.f32 %r1, %f0;", 0x3F802000},
    {"mov.f32 %f0, 0f3F818000; cvt.rn.bf16.f32 %h0, %f0; cvt.u32.u16 %r1, %h0;", 0x3F82},
    // Ties go to the even number; what is not a number has one form.
    {"mov.f32 %f0, 0f3F808000; cvt.rn.bf16.f32 %h0, %f0; cvt.u32.u16 %r1, %h0;", 0x3F80},
    {"mov.f32 %f0, 0fFFC12345; cvt.rn.bf16.f32 %h0, %f0; cvt.u32.u16 %r1, %h0;", 0x7FFF},
    {"mov.f32 %f0, 0f7F7FFFFF; cvt.rn.bf16.f32 %h0, %f0; cvt.u32.u16 %r1, %h0;", 0x7F80},
    {"mov.f32 %f0, 0f3F818000; cvt.rn.bf16x2.f32 %r1, %f0, 0fC0000000;", 0x3F82C000},
    {"mov.f32 %f0, 0f7F800001; cvt.rn.bf16x2.f32 %r1, %f0, 0f40000000;", 0x7FFF4000},
    {"mov.f32 %f0, 0fFF800001; cvt.rn.bf16x2.f32 %r1, 0f40000000, %f0;", 0x40007FFF},
    {"mov.f64 %g0, 0d3FF0000000000000; cvt.rn.f32.f64 %f0, %g0; mov.b32 %r1, %f0;", bits(1)},
};
const InstructionCase kFloats[] = {
    {"cvt.rn.f32.s32 %f0, %r0; add.f32 %f1, %f0, 0f3F800000; mov.b32 %r1, %f1;", bits(6)},
    {"cvt.rn.f32.s32 %f0, %r0; div.rn.f32 %f1, %f0, 0f40000000; mov.b32 %r1, %f1;", bits(2.5F)},
    {"mov.f32 %f0, 0f7FC00000; max.f32 %f1, %f0, 0f3F800000; mov.b32 %r1, %f1;", bits(1)},
    // 1 + 2^-30: to the nearest is 1, and downwards too; 1 - 2^-30 is below 1 downwards.
    {"fma.rn.f32 %f0, 0fB0800000, 0f3F800000, 0f3F800000; mov.b32 %r1, %f0;", bits(1)},
    {"fma.rm.f32 %f0, 0fB0800000, 0f3F800000, 0f3F800000; mov.b32 %r1, %f0;", 0x3F7FFFFF},
    {"rcp.rn.f32 %f0, 0f40800000; mov.b32 %r1, %f0;", bits(0.25F)},
    {"sqrt.rn.f32 %f0, 0f41100000; mov.b32 %r1, %f0;", bits(3)},
    {"ex2.approx.ftz.f32 %f0, 0f40400000; mov.b32 %r1, %f0;", bits(8)},
    {"ex2.approx.ftz.f32 %f0, 0fC3020000; mov.b32 %r1, %f0;", 0},  // 2^-130 is subnormal
    {"lg2.approx.f32 %f0, 0f41000000; mov.b32 %r1, %f0;", bits(3)},
    {"copysign.f32 %f0, 0fBF800000, 0f40000000; mov.b32 %r1, %f0;", bits(-2)},
    {"neg.f32 %f0, 0f00000000; mov.b32 %r1, %f0;", 0x80000000},
    {"abs.f32 %f0, 0fC0000000; mov.b32 %r1, %f0;", bits(2)},
};
const InstructionCase kMemory[] = {
    {"ld.global.u32 %r1, [%d0+4];", 6},
    {"ld.global.nc.u32 %r1, [%d0];", 5},
    {"st.local.u32 [l+8], %r0; ld.local.u32 %r1, [l+8];", 5},
    {"mov.u64 %d2, s; cvta.shared.u64 %d3, %d2; mad.wide.u32 %d3, %r0, 4, %d3; st.u32 [%d3], "
     "%r0;"
     "mad.wide.u32 %d2, %r0, 4, %d2; ld.shared.u32 %r1, [%d2];",
     5},
    {"mov.u64 %d2, s; mad.wide.u32 %d2, %r0, 4, %d2; mov.u32 %r2, -2; st.shared.u32 [%d2], %r2;"
     "ld.shared.s8 %r1, [%d2];",
     0xFFFFFFFE},
    {"and.b32 %r2, %r0, 28; sub.u32 %r3, %r2, %r0; mad.wide.s32 %d2, %r3, 4, %d0;"
     "ld.global.v4.u32 {%r4, %r5, %r6, %r1}, [%d2];",
     7},
    // Adds in the order of the lanes: the sum of those below.
    {"ld.param.u64 %d2, [out]; atom.global.add.u32 %r1, [%d2+508], %r0;", 10},
};
const InstructionCase kCopies[] = {
    {"mov.u64 %d2, s; mad.wide.u32 %d2, %r0, 4, %d2;"
     "cp.async.ca.shared.global [%d2+64], [%d0+4], 4; cp.async.wait_all;"
     "ld.shared.u32 %r1, [%d2+64];",
     6},
    // Each thread copies 8 bytes of which it reads 5: the word 2 n and a byte of the next.
    {"mov.u64 %d2, s; mad.wide.u32 %d2, %r0, 8, %d2; ld.param.u64 %d3, [in];"
     "mad.wide.u32 %d3, %r0, 8, %d3; mov.u32 %r2, 5;"
     "cp.async.ca.shared.global.L2::128B [%d2], [%d3], 8, %r2; cp.async.wait_all;"
     "ld.shared.v2.u32 {%r3, %r4}, [%d2]; mad.lo.s32 %r1, %r3, 100, %r4;",
     1011},
    // 4 of 8 bytes: the second word becomes 0.
    {"mov.u64 %d2, s; mad.wide.u32 %d2, %r0, 8, %d2; ld.param.u64 %d3, [in];"
     "mad.wide.u32 %d3, %r0, 8, %d3; st.shared.u32 [%d2+4], %r0;"
     "cp.async.ca.shared.global [%d2], [%d3], 8, 4; cp.async.wait_all;"
     "ld.shared.v2.u32 {%r3, %r4}, [%d2]; mad.lo.s32 %r1, %r3, 100, %r4;",
     1000},
    // Sixteen threads copy 16 bytes each.
    {"mov.u64 %d2, s; mad.wide.u32 %d2, %r0, 16, %d2; ld.param.u64 %d3, [in];"
     "mad.wide.u32 %d3, %r0, 16, %d3; mov.u32 %r1, 0; setp.lt.u32 %p0, %r0, 16;"
     "@%p0 cp.async.cg.shared.global [%d2], [%d3], 16; cp.async.wait_all;"
     "@%p0 ld.shared.u32 %r1, [%d2+12];",
     23},
    // None of the bytes is read: they become zeros, and the address may be any.
    {"mov.u64 %d2, s; mad.wide.u32 %d2, %r0, 16, %d2; mov.u64 %d3, 0; mov.u32 %r1, 9;"
     "setp.lt.u32 %p0, %r0, 16; @%p0 cp.async.cg.shared.global [%d2], [%d3], 16, 0;"
     "cp.async.wait_all; @%p0 ld.shared.u32 %r1, [%d2+12];",
     0},
    // The older of two groups is there while the newer is not waited for.
    {"mov.u64 %d2, s; mad.wide.u32 %d2, %r0, 4, %d2;"
     "cp.async.ca.shared.global [%d2], [%d0], 4; cp.async.commit_group;"
     "cp.async.ca.shared.global [%d2+128], [%d0+4], 4; cp.async.commit_group;"
     "cp.async.wait_group 1; ld.shared.u32 %r2, [%d2];"
     "cp.async.wait_group 0; ld.shared.u32 %r3, [%d2+128]; mad.lo.s32 %r1, %r2, 100, %r3;",
     506},
};
const InstructionCase kWarps[] = {
    {"shfl.sync.bfly.b32 %r1, %r0, 1, 31, -1;", 4},
    {"shfl.sync.down.b32 %r1|%p0, %r0, 2, 31, -1;", 7},
    {"shfl.sync.up.b32 %r1, %r0, 3, 0, -1;", 2},
    {"shfl.sync.idx.b32 %r1, %r0, 9, 31, -1;", 9},
    // In segments of 8 lanes, lane 5's neighbour at a distance of 4 is outside: it keeps its
    // own.
    {"shfl.sync.down.b32 %r1|%p0, %r0, 4, 0x1807, -1; @%p0 mov.u32 %r1, 99;", 5},
    {"setp.lt.u32 %p0, %r0, 3; vote.sync.ballot.b32 %r1, %p0, -1;", 7},
    {"setp.lt.u32 %p0, %r0, 3; vote.sync.any.pred %p1, %p0, -1; selp.b32 %r1, 1, 2, %p1;", 1},
    // Lanes that parted meet at the shuffle.
    {"mov.u32 %r2, %r0; setp.lt.u32 %p0, %r0, 5; @%p0 bra SKIP; add.u32 %r2, %r2, 100;"
     "SKIP: shfl.sync.bfly.b32 %r1, %r2, 1, 31, -1;",
     4},
    // Each lane goes round as often as its number says.
    {"mov.u32 %r1, 0; mov.u32 %r2, 0; LOOP: setp.ge.u32 %p0, %r2, %r0; @%p0 bra DONE;"
     "add.u32 %r2, %r2, 1; add.u32 %r1, %r1, 3; bra.uni LOOP; DONE:",
     15},
};

INSTANTIATE_TEST_SUITE_P(Integers, Instructions, ::testing::ValuesIn(kIntegers));
INSTANTIATE_TEST_SUITE_P(Bits, Instructions, ::testing::ValuesIn(kBits));
INSTANTIATE_TEST_SUITE_P(Moves, Instructions, ::testing::ValuesIn(kMoves));
INSTANTIATE_TEST_SUITE_P(Conversions, Instructions, ::testing::ValuesIn(kConversions));
INSTANTIATE_TEST_SUITE_P(Floats, Instructions, ::testing::ValuesIn(kFloats));
INSTANTIATE_TEST_SUITE_P(Memory, Instructions, ::testing::ValuesIn(kMemory));
INSTANTIATE_TEST_SUITE_P(Copies, Instructions, ::testing::ValuesIn(kCopies));
INSTANTIATE_TEST_SUITE_P(Warps, Instructions, ::testing::ValuesIn(kWarps));

TEST(Decoder, RefusesWhatIsNotCovered) {
  const auto message = message_of<NotCovered>;
  EXPECT_EQ(message("tanh.approx.f32 %f0, %f1;"),
            "test.ptx:20: an instruction that is not covered: tanh.approx.f32");
  EXPECT_EQ(message("add.sat.s32 %r1, %r0, 1;"),
            "test.ptx:20: a modifier that is not covered: add.sat.s32");
  EXPECT_EQ(message("mov.u32 %r1, %clock;"),
            "test.ptx:20: an operand that is not covered: %clock");
  for (const std::string copy :
       {"cp.async.cg.shared.global [%d2], [%d0], 8",
        "cp.async.ca.shared.global [%d2], [%d0], 2",
        "cp.async.ca.shared.global [%d2], [%d0], %r0", "cp.async.ca.shared.global [%d2], [%d0]",
        "cp.async.ca.shared.global [%d2], [%d0], 4, %p0"}) {
    EXPECT_EQ(message(copy + ";"), "test.ptx:20: a copy that is not covered: " + copy);
  }
  EXPECT_EQ(message("cp.async.ca.shared.global.L2::cache_hint [%d2], [%d0], 4, %d3;"),
            "test.ptx:20: a modifier that is not covered: "
            "cp.async.ca.shared.global.L2::cache_hint");
  EXPECT_EQ(message("bar.sync 1;"), "test.ptx:20: a barrier that is not covered: bar.sync 1");
}

TEST(Launch, RunsEveryBlockOfTheGrid) {
  Module module("grid.ptx", R"(
.entry grid(.param .u64 out) {
  .reg .b32 %r<4>;
  .reg .b64 %d<2>;
  ld.param.u64 %d0, [out];
  mov.u32 %r0, %ctaid.x;
  mov.u32 %r1, %nctaid.x;
  mov.u32 %r2, %ctaid.y;
  mad.lo.s32 %r3, %r2, %r1, %r0;
  mad.wide.u32 %d1, %r3, 4, %d0;
  st.global.u32 [%d1], %r3;
})");
  std::array<uint32_t, 6> out{};
  GlobalMemory memory;
  memory.add(out.data(), sizeof out, true, "out");
  const void* const address = out.data();
  const Argument argument{&address, 8};
  launch(module.kernel("grid"), {3, 2}, {1}, {&argument, 1}, memory);
  EXPECT_EQ(out, (std::array<uint32_t, 6>{0, 1, 2, 3, 4, 5}));
}

}  // namespace
}  // namespace tidemark::ptx
