// mma and ldmatrix against plain loops, with fragments laid out as the PTX ISA draws them.
#include <bit>
#include <random>

#include "tests/support/ptx/kernel_test.h"

namespace tidemark::ptx {
namespace {

// Four words of A, two of B and four of C for each lane; four of D come back.
struct Fragments {
  alignas(16) uint32_t a[32][4], b[32][2], d[32][4];
  alignas(16) float c[32][4];
};

void run_mma(const std::string& instruction, Fragments& fragments) {
  Module module("mma.ptx", R"(
.entry mma(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d) {
  .reg .b32 %r<8>;
  .reg .f32 %f<8>;
  .reg .b64 %d<8>;
  mov.u32 %r0, %laneid;
  ld.param.u64 %d0, [a];
  ld.param.u64 %d1, [b];
  ld.param.u64 %d2, [c];
  ld.param.u64 %d3, [d];
  mad.wide.u32 %d0, %r0, 16, %d0;
  mad.wide.u32 %d1, %r0, 8, %d1;
  mad.wide.u32 %d2, %r0, 16, %d2;
  mad.wide.u32 %d3, %r0, 16, %d3;
  ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%d0];
  ld.global.v2.u32 {%r5, %r6}, [%d1];
  ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%d2];
  )" + instruction + R"( {%f0, %f1, %f2, %f3}, {%r1, %r2, %r3, %r4}, {%r5, %r6},
      {%f0, %f1, %f2, %f3};
  st.global.v4.f32 [%d3], {%f0, %f1, %f2, %f3};
})");
  GlobalMemory memory;
  memory.add(&fragments, sizeof fragments, true, "fragments");
  const void* const pointers[] = {fragments.a, fragments.b, fragments.c, fragments.d};
  std::vector<Argument> arguments;
  for (const auto& pointer : pointers) arguments.push_back({&pointer, 8});
  launch(module.kernel("mma"), {}, {32}, arguments, memory);
}

// Small integers, whose products and sums are exact in any format.
struct Matrices {
  Matrices() {
    std::mt19937 random(7);
    const auto draw = [&] { return static_cast<float>(static_cast<int>(random() % 9) - 4); };
    for (auto& row : a)
      for (float& x : row) x = draw();
    for (auto& row : b)
      for (float& x : row) x = draw();
    for (auto& row : c)
      for (float& x : row) x = draw();
  }
  float product(int row, int column, int depth) const {
    float sum = c[row][column];
    for (int k = 0; k < depth; ++k) sum += a[row][k] * b[k][column];
    return sum;
  }
  float a[16][16], b[16][8], c[16][8];
};

uint32_t word(float low, float high) {
  return std::bit_cast<uint32_t>(low) >> 16 | (std::bit_cast<uint32_t>(high) & 0xFFFF0000);
}

void expect_product(const Matrices& m, const Fragments& f, int depth) {
  for (int lane = 0; lane < 32; ++lane) {
    const int g = lane / 4, t = lane % 4;
    EXPECT_EQ(std::bit_cast<float>(f.d[lane][0]), m.product(g, 2 * t, depth));
    EXPECT_EQ(std::bit_cast<float>(f.d[lane][1]), m.product(g, 2 * t + 1, depth));
    EXPECT_EQ(std::bit_cast<float>(f.d[lane][2]), m.product(g + 8, 2 * t, depth));
    EXPECT_EQ(std::bit_cast<float>(f.d[lane][3]), m.product(g + 8, 2 * t + 1, depth));
  }
}

void set_c(const Matrices& m, Fragments& f) {
  for (int lane = 0; lane < 32; ++lane) {
    const int g = lane / 4, t = lane % 4;
    for (int i = 0; i < 4; ++i) f.c[lane][i] = m.c[g + i / 2 * 8][2 * t + i % 2];
  }
}

TEST(TensorCores, MultiplyTf32) {
  const Matrices m;
  Fragments f{};
  set_c(m, f);
  for (int lane = 0; lane < 32; ++lane) {
    const int g = lane / 4, t = lane % 4;
    f.a[lane][0] = std::bit_cast<uint32_t>(m.a[g][t]);
    f.a[lane][1] = std::bit_cast<uint32_t>(m.a[g + 8][t]);
    f.a[lane][2] = std::bit_cast<uint32_t>(m.a[g][t + 4]);
    f.a[lane][3] = std::bit_cast<uint32_t>(m.a[g + 8][t + 4]);
    f.b[lane][0] = std::bit_cast<uint32_t>(m.b[t][g]);
    f.b[lane][1] = std::bit_cast<uint32_t>(m.b[t + 4][g]);
  }
  run_mma("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", f);
  expect_product(m, f, 8);
}

TEST(TensorCores, MultiplyBFloat16) {
  const Matrices m;
  Fragments f{};
  set_c(m, f);
  for (int lane = 0; lane < 32; ++lane) {
    const int g = lane / 4, t = 2 * (lane % 4);
    f.a[lane][0] = word(m.a[g][t], m.a[g][t + 1]);
    f.a[lane][1] = word(m.a[g + 8][t], m.a[g + 8][t + 1]);
    f.a[lane][2] = word(m.a[g][t + 8], m.a[g][t + 9]);
    f.a[lane][3] = word(m.a[g + 8][t + 8], m.a[g + 8][t + 9]);
    f.b[lane][0] = word(m.b[t][g], m.b[t + 1][g]);
    f.b[lane][1] = word(m.b[t + 8][g], m.b[t + 9][g]);
  }
  run_mma("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", f);
  expect_product(m, f, 16);
}

// Each lane writes a word of an 8 x 8 matrix of 16-bit elements: element (r, c) is 8 r + c.
const std::string kMatrix = R"(
  mov.u64 %d2, s;
  mad.wide.u32 %d3, %r0, 4, %d2;
  mul.lo.u32 %r2, %r0, 0x20002;
  add.u32 %r2, %r2, 0x10000;
  st.shared.u32 [%d3], %r2;
  bar.sync 0;
  and.b32 %r3, %r0, 7;
  mad.wide.u32 %d3, %r3, 16, %d2;
)";

TEST(TensorCores, LoadAMatrix) {
  const Words words = run_body(
      kMatrix +
      "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%d3]; st.global.u32 [%d1], %r1;");
  for (uint32_t lane = 0; lane < 32; ++lane) {
    const uint32_t element = 8 * (lane / 4) + 2 * (lane % 4);
    EXPECT_EQ(words.out[lane], element | (element + 1) << 16);
  }
}

TEST(TensorCores, LoadAMatrixTransposed) {
  const Words words = run_body(
      kMatrix +
      "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r1}, [%d3]; st.global.u32 [%d1], %r1;");
  for (uint32_t lane = 0; lane < 32; ++lane) {
    const uint32_t element = 8 * (2 * (lane % 4)) + lane / 4;
    EXPECT_EQ(words.out[lane], element | (element + 8) << 16);
  }
}

// Each lane writes a row of four 8 x 8 matrices; element (r, c) of matrix m is 64 m + 8 r + c.
// Then it names the row whose number is its own ^ 13, so that matrices 0 and 1, and 2 and 3,
// change places, and rows do too.
Words load_four_matrices(const std::string& transposed) {
  std::string body = R"(
  .shared .align 16 .b8 rows[512];
  mov.u64 %d2, rows;
  mad.wide.u32 %d3, %r0, 16, %d2;
  mul.lo.u32 %r2, %r0, 0x80008;
  add.u32 %r3, %r2, 0x10000;
  add.u32 %r4, %r2, 0x30002;
  add.u32 %r5, %r2, 0x50004;
  add.u32 %r6, %r2, 0x70006;
  st.shared.v4.u32 [%d3], {%r3, %r4, %r5, %r6};
  bar.sync 0;
  xor.b32 %r7, %r0, 13;
  mad.wide.u32 %d3, %r7, 16, %d2;
  ldmatrix.sync.aligned.m8n8.x4)" +
                     transposed + R"(.shared.b16 {%r10, %r11, %r12, %r13}, [%d3];
  ld.param.u64 %d4, [out];
  mad.wide.u32 %d4, %r0, 16, %d4;
  st.global.v4.u32 [%d4], {%r10, %r11, %r12, %r13};
)";
  return run_body(body);
}

// Of matrix m as the lanes have named its rows.
uint32_t element_of(uint32_t matrix, uint32_t row, uint32_t column) {
  return 8 * ((8 * matrix + row) ^ 13) + column;
}

TEST(TensorCores, LoadFourMatrices) {
  const Words words = load_four_matrices("");
  for (uint32_t lane = 0; lane < 32; ++lane) {
    for (uint32_t m = 0; m < 4; ++m) {
      const uint32_t g = lane / 4, t = 2 * (lane % 4);
      EXPECT_EQ(words.out[4 * lane + m], element_of(m, g, t) | element_of(m, g, t + 1) << 16);
    }
  }
}

TEST(TensorCores, LoadFourMatricesTransposed) {
  const Words words = load_four_matrices(".trans");
  for (uint32_t lane = 0; lane < 32; ++lane) {
    for (uint32_t m = 0; m < 4; ++m) {
      const uint32_t g = lane / 4, t = 2 * (lane % 4);
      EXPECT_EQ(words.out[4 * lane + m], element_of(m, t, g) | element_of(m, t + 1, g) << 16);
    }
  }
}

}  // namespace
}  // namespace tidemark::ptx
