// Instructions that lanes of a warp execute together: shuffles, votes, and those of tensor
// cores, with the layouts of fragments as NVIDIA's PTX ISA describes them. The warp has seen to
// it that the lanes are there.
#include <algorithm>
#include <array>
#include <cstring>

#include "tests/support/ptx/block.h"
#include "tests/support/ptx/instructions.h"
#include "tests/support/ptx/step.h"

namespace tidemark::ptx {
namespace {

// The lane that a shuffle's `lane` reads from; outside the segment: none.
struct Source {
  int lane;
  bool within;
};

Source shuffle_source(const Step& s, int lane) {
  const auto b = static_cast<int>(s.in(1)[lane] & 31);
  const auto c = static_cast<int>(s.in(2)[lane]);
  const int segment = c >> 8 & 31, first = lane & segment;
  const int bound = first | ((c & 31) & ~segment);
  Source source{};
  if (s.has(Modifier::k_up)) {
    source = {lane - b, lane - b >= bound};
  } else {
    if (s.has(Modifier::k_down)) source.lane = lane + b;
    if (s.has(Modifier::k_bfly)) source.lane = lane ^ b;
    if (s.has(Modifier::k_idx)) source.lane = first | (b & ~segment);
    source.within = source.lane <= bound;
  }
  if (!source.within) source.lane = lane;
  return source;
}

// Eight rows of eight 16-bit elements in shared memory; row r begins where lane first + r says.
struct Matrix {
  const Step& s;
  int first;

  uint64_t address(int row, int column) const {
    return s.in(0)[first + row] + static_cast<uint64_t>(s.instruction.offset + 2 * column);
  }
  uint32_t read(int lane, int row, int column) const {
    uint16_t value = 0;
    std::memcpy(&value, s.block.access(s, lane, Space::kShared, address(row, column), 2, false),
                2);
    return value;
  }
  void require_alignment() const {
    for (int row = 0; row < 8; ++row) {
      if (address(row, 0) % 16 != 0) {
        s.fail(Check::kMisaligned, first + row, "a row of a matrix is no multiple of 16");
      }
    }
  }
};

// A product's operands and result, of k = 8 words in TF32 or 16 numbers in bfloat16.
struct Product {
  static constexpr int kRows = 16, kColumns = 8, kMaxDepth = 16;
  float a[kRows][kMaxDepth], b[kMaxDepth][kColumns], c[kRows][kColumns];
};

// The numbers of a register's word, at `at` and the places after it.
void unpack(uint32_t word, bool bfloat16, float* at, int step) {
  if (bfloat16) {
    at[0] = std::bit_cast<float>(word << 16);
    at[step] = std::bit_cast<float>(word & 0xFFFF0000);
  } else {
    at[0] = std::bit_cast<float>(word & ~uint32_t{0x1FFF});  // TF32 has no more bits
  }
}

void gather_operands(const Step& s, bool bfloat16, Product& product) {
  const int each = bfloat16 ? 2 : 1;  // numbers of a word
  for (int lane = 0; lane < kLanes; ++lane) {
    const int g = lane / 4, t = lane % 4;
    const auto word = [&](int i) { return static_cast<uint32_t>(s.in(i)[lane]); };
    for (int i = 0; i < 4; ++i) {
      unpack(word(i), bfloat16, &product.a[g + i % 2 * 8][(t + i / 2 * 4) * each], 1);
      product.c[g + i / 2 * 8][2 * t + i % 2] = std::bit_cast<float>(word(6 + i));
    }
    for (int i = 0; i < 2; ++i) {
      unpack(word(4 + i), bfloat16, &product.b[(t + i * 4) * each][g], Product::kColumns);
    }
  }
}

}  // namespace

void execute_shfl(const Step& s) {
  std::array<uint64_t, kLanes> values{};  // the output may be the input's register
  for_lanes(s.mask, [&](int lane) { values[static_cast<size_t>(lane)] = s.in(0)[lane]; });
  const LaneMask given = s.defined[s.instruction.in[0]];
  LaneMask got = 0;
  for_lanes(s.mask, [&](int lane) {
    const Source source = shuffle_source(s, lane);
    if ((s.mask >> source.lane & 1) == 0) {
      s.fail(Check::kDiverged, lane,
             "reads lane " + std::to_string(source.lane) + ", which is not here");
    }
    s.out(0)[lane] = static_cast<uint32_t>(values[static_cast<size_t>(source.lane)]);
    got |= (given >> source.lane & 1) << lane;
    if (s.instruction.outputs > 1) s.out(1)[lane] = source.within ? 1 : 0;
  });
  if (s.instruction.outputs > 1) s.defined[s.instruction.out[1]] |= s.mask;
  LaneMask& defined = s.defined[s.instruction.out[0]];
  defined = (defined & ~s.mask) | got;
}

void execute_vote(const Step& s) {
  LaneMask set = 0;
  for_lanes(s.mask, [&](int lane) { set |= static_cast<LaneMask>(s.in(0)[lane] & 1) << lane; });
  uint64_t result = set;
  if (s.has(Modifier::k_any)) result = set != 0 ? 1 : 0;
  if (s.has(Modifier::k_all)) result = set == s.mask ? 1 : 0;
  for_lanes(s.mask, [&](int lane) { s.out()[lane] = result; });
}

void execute_ldmatrix(const Step& s) {
  const int count = std::min<int>(s.instruction.outputs, Instruction::kMaxOutputs);
  uint64_t loaded[Instruction::kMaxOutputs][kLanes];  // the address may be an output too
  for (int number = 0; number < count; ++number) {
    const Matrix matrix{s, 8 * number};
    matrix.require_alignment();
    for (int lane = 0; lane < kLanes; ++lane) {
      const int g = lane / 4, t = lane % 4;
      uint32_t word = 0;
      for (int i = 0; i < 2; ++i) {
        word |= (s.has(Modifier::k_trans) ? matrix.read(lane, 2 * t + i, g)
                                          : matrix.read(lane, g, 2 * t + i))
                << (16 * i);
      }
      loaded[number][lane] = word;
    }
  }
  for (int number = 0; number < count; ++number) {
    for (int lane = 0; lane < kLanes; ++lane) s.out(number)[lane] = loaded[number][lane];
  }
}

// d = a b + c. The sum is rounded once; hardware rounds more often, in an order of its own.
void execute_mma(const Step& s) {
  const bool bfloat16 = s.instruction.other_type.kind == Kind::kBFloat16;
  const bool known =
      bfloat16 ? s.has(Modifier::k_m16n8k16)
               : s.has(Modifier::k_m16n8k8) && s.instruction.other_type.kind == Kind::kTf32;
  if (!known || s.instruction.inputs != 10) wrong_type(s);
  Product product;
  gather_operands(s, bfloat16, product);
  const int depth = bfloat16 ? 16 : 8;
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int i = 0; i < 4; ++i) {
      const int row = lane / 4 + i / 2 * 8, column = 2 * (lane % 4) + i % 2;
      double sum = product.c[row][column];
      for (int k = 0; k < depth; ++k) sum += double{product.a[row][k]} * product.b[k][column];
      s.out(i)[lane] = to_register(static_cast<float>(sum));
    }
  }
}

}  // namespace tidemark::ptx
