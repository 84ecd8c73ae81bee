// What a launch says that it did.
#include "tests/support/ptx/kernel_test.h"

namespace tidemark::ptx {
namespace {

Counts counts_of(const std::string& body, int threads) {
  Words words;
  return run_text(kernel_text(body), words, threads);
}

TEST(CountsTest, BytesAreThoseThatThreadsAskFor) {
  const Counts counts = counts_of(
      "ld.global.u32 %r1, [%d0]; st.global.u32 [%d1], %r1; st.shared.u32 [s], 1;"
      "setp.lt.u32 %p0, %r0, 3; @%p0 ld.global.u16 %h0, [%d0];",
      1);
  EXPECT_EQ(counts.read, 4 + 2);
  EXPECT_EQ(counts.written, 4);
  EXPECT_EQ(counts.flops, 0);
}

TEST(CountsTest, OperationsAreThoseOfEveryLane) {
  const Counts counts = counts_of(
      "mov.f32 %f0, 0f3F800000; fma.rn.f32 %f1, %f0, %f0, %f0; setp.lt.u32 %p0, %r0, 3;"
      "@%p0 mul.f32 %f2, %f0, %f0; max.f32 %f3, %f0, %f0; add.u32 %r1, %r0, %r0;",
      64);
  EXPECT_EQ(counts.flops, 2 * 64 + 3);
  EXPECT_EQ(counts.tensor_flops, 0);
}

TEST(CountsTest, ProductsOfTensorCoresCountByThemselves) {
  const std::string zeros =
      "mov.u32 %r1, 0; mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0;"
      "mov.f32 %f3, %f0; mma.sync.aligned.";
  const std::string operands =
      " {%f0, %f1, %f2, %f3}, {%r1, %r1, %r1, %r1}, {%r1, %r1}, {%f0, %f1, %f2, %f3};";
  const Counts narrow = counts_of(zeros + "m16n8k16.row.col.f32.bf16.bf16.f32" + operands, 32);
  EXPECT_EQ(narrow.tensor_flops, 2 * 16 * 8 * 16);
  EXPECT_EQ(narrow.flops, 0);
  const Counts wide = counts_of(zeros + "m16n8k8.row.col.f32.tf32.tf32.f32" + operands, 64);
  EXPECT_EQ(wide.tensor_flops, 2 * (2 * 16 * 8 * 8));
}

}  // namespace
}  // namespace tidemark::ptx
