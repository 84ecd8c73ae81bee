#include "models/checkpoint/gguf_types.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "models/checkpoint/halves.h"

namespace tidemark {
namespace {

static_assert(std::endian::native == std::endian::little, "values are read as they are stored");

float half_at(const uint8_t* in) {
  uint16_t bits = 0;
  std::memcpy(&bits, in, sizeof(bits));
  return half_to_float(bits);
}

void from_f32(const uint8_t* in, float* out) { std::memcpy(out, in, sizeof(*out)); }
void from_f16(const uint8_t* in, float* out) { *out = half_at(in); }
void from_bf16(const uint8_t* in, float* out) {
  uint16_t bits = 0;
  std::memcpy(&bits, in, sizeof(bits));
  *out = bfloat16_to_float(bits);
}

// In the comments, d and m are halves, and q are the integers of a block. Of two integers in
// one byte, the lower four bits belong to the earlier element.

// d, 32 x int8: d q.
void from_q8_0(const uint8_t* in, float* out) {
  const float d = half_at(in);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(static_cast<int8_t>(in[2 + i]));
}

// d, 16 bytes with elements i and i + 16: d (q - 8).
void from_q4_0(const uint8_t* in, float* out) {
  const float d = half_at(in);
  for (int i = 0; i < 16; ++i) {
    out[i] = d * static_cast<float>((in[2 + i] & 0xF) - 8);
    out[i + 16] = d * static_cast<float>((in[2 + i] >> 4) - 8);
  }
}

// d, m, 16 bytes with elements i and i + 16: d q + m.
void from_q4_1(const uint8_t* in, float* out) {
  const float d = half_at(in), m = half_at(in + 2);
  for (int i = 0; i < 16; ++i) {
    out[i] = d * static_cast<float>(in[4 + i] & 0xF) + m;
    out[i + 16] = d * static_cast<float>(in[4 + i] >> 4) + m;
  }
}

uint32_t bits_at(const uint8_t* in) {
  uint32_t bits = 0;
  std::memcpy(&bits, in, sizeof(bits));
  return bits;
}
// Element i of 32 with four bits in 16 bytes, as above, and a fifth as bit i of `high`.
int five_bits(const uint8_t* low, uint32_t high, int i) {
  const int bits = i < 16 ? low[i] & 0xF : low[i - 16] >> 4;
  return bits | static_cast<int>(high >> i & 1) << 4;
}

// d, 32 fifth bits, 16 bytes: d (q - 16).
void from_q5_0(const uint8_t* in, float* out) {
  const float d = half_at(in);
  const uint32_t high = bits_at(in + 2);
  for (int i = 0; i < 32; ++i) {
    out[i] = d * static_cast<float>(five_bits(in + 6, high, i) - 16);
  }
}

// d, m, 32 fifth bits, 16 bytes: d q + m.
void from_q5_1(const uint8_t* in, float* out) {
  const float d = half_at(in), m = half_at(in + 2);
  const uint32_t high = bits_at(in + 4);
  for (int i = 0; i < 32; ++i) {
    out[i] = d * static_cast<float>(five_bits(in + 8, high, i)) + m;
  }
}

// Element i of 256 with two bits in 64 bytes; each half of the block has 32 bytes, with
// elements i, i + 32, i + 64 and i + 96.
int two_bits(const uint8_t* in, int i) {
  return in[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
}

// A scale s and an offset o of each 16 elements, four bits each in a byte, 64 bytes, d, m:
// (d s) q - (m o).
void from_q2_k(const uint8_t* in, float* out) {
  const float d = half_at(in + 80), m = half_at(in + 82);
  for (int i = 0; i < 256; ++i) {
    const uint8_t packed = in[i / 16];
    const float scale = d * static_cast<float>(packed & 0xF);
    const float offset = m * static_cast<float>(packed >> 4);
    out[i] = scale * static_cast<float>(two_bits(in + 16, i)) - offset;
  }
}

// 32 bytes with a third bit of each element, 64 bytes, scales s of each 16 elements with 6 bits
// in 12 bytes, d: (d (s - 32)) (q - 4).
void from_q3_k(const uint8_t* in, float* out) {
  const uint8_t* packed = in + 96;
  const float d = half_at(in + 108);
  for (int i = 0; i < 256; ++i) {
    const int group = i / 16;
    const int low = packed[group % 8] >> (group / 8 * 4) & 0xF;
    const int high = packed[8 + group % 4] >> (group / 4 * 2) & 3;
    const float scale = d * static_cast<float>((low | high << 4) - 32);
    const int q = two_bits(in + 32, i) | (in[i % 32] >> (i / 32) & 1) << 2;
    out[i] = scale * static_cast<float>(q - 4);
  }
}

// Scales s and offsets o of eight groups, with 6 bits in 12 bytes.
struct ScaleAndOffset {
  int s, o;
};
ScaleAndOffset six_bits(const uint8_t* packed, int group) {
  if (group < 4) return {packed[group] & 0x3F, packed[4 + group] & 0x3F};
  // Four bits of each in the last bytes, two above those of an earlier one.
  return {(packed[4 + group] & 0xF) | packed[group - 4] >> 6 << 4,
          packed[4 + group] >> 4 | packed[group] >> 6 << 4};
}

// d, m, s and o, for `has_fifth` 32 bytes with a bit of each group, then four times 32 bytes
// with elements i and i + 32: (d s) q - (m o), with s and o of each 32 elements.
template <bool has_fifth>
void from_q4_k_or_q5_k(const uint8_t* in, float* out) {
  const float d = half_at(in), m = half_at(in + 2);
  const uint8_t* high = in + 16;
  const uint8_t* quants = has_fifth ? in + 48 : in + 16;
  for (int group = 0; group < 8; ++group) {
    const auto [s, o] = six_bits(in + 4, group);
    const float scale = d * static_cast<float>(s), offset = m * static_cast<float>(o);
    for (int i = 0; i < 32; ++i) {
      int q = quants[group / 2 * 32 + i] >> (group % 2 * 4) & 0xF;
      if (has_fifth) q |= (high[i] >> group & 1) << 4;
      *out++ = scale * static_cast<float>(q) - offset;
    }
  }
}

// 128 bytes with four bits of each element, 64 with two more, int8 scales s of each 16, d:
// (d s) (q - 32). Each half of the block is alike: 64 bytes with elements i and i + 64, and 32
// with elements i, i + 32, i + 64 and i + 96.
void from_q6_k(const uint8_t* in, float* out) {
  const uint8_t* scales = in + 192;
  const float d = half_at(in + 208);
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128, within = i % 128;
    const int low = in[half * 64 + within % 64] >> (within / 64 * 4) & 0xF;
    const int high = in[128 + half * 32 + within % 32] >> (within / 32 * 2) & 3;
    const float scale = d * static_cast<float>(static_cast<int8_t>(scales[i / 16]));
    out[i] = scale * static_cast<float>((low | high << 4) - 32);
  }
}

template <auto kBlock, int kBytes, int kElements>
void each(const uint8_t* in, size_t blocks, float* out) {
  for (size_t i = 0; i < blocks; ++i) kBlock(in + i * kBytes, out + i * kElements);
}

template <auto kBlock, int kBytes, int kElements>
constexpr GgufType readable(uint32_t number, std::string_view name) {
  static_assert(kElements <= kMaxGgufBlockElements && kBytes <= kElements * 4);
  return {number, name, kElements, kBytes, each<kBlock, kBytes, kElements>};
}

constexpr std::array kGgufTypes{
    readable<from_f32, 4, 1>(0, "F32"),
    readable<from_f16, 2, 1>(1, "F16"),
    readable<from_q4_0, 18, 32>(2, "Q4_0"),
    readable<from_q4_1, 20, 32>(3, "Q4_1"),
    readable<from_q5_0, 22, 32>(6, "Q5_0"),
    readable<from_q5_1, 24, 32>(7, "Q5_1"),
    readable<from_q8_0, 34, 32>(8, "Q8_0"),
    readable<from_q2_k, 84, 256>(10, "Q2_K"),
    readable<from_q3_k, 110, 256>(11, "Q3_K"),
    readable<from_q4_k_or_q5_k<false>, 144, 256>(12, "Q4_K"),
    readable<from_q4_k_or_q5_k<true>, 176, 256>(13, "Q5_K"),
    readable<from_q6_k, 210, 256>(14, "Q6_K"),
    GgufType{15, "Q8_K", 256, 292, nullptr},
    GgufType{24, "I8", 1, 1, nullptr},
    GgufType{25, "I16", 1, 2, nullptr},
    GgufType{26, "I32", 1, 4, nullptr},
    GgufType{27, "I64", 1, 8, nullptr},
    GgufType{28, "F64", 1, 8, nullptr},
    readable<from_bf16, 2, 1>(30, "BF16"),
};

}  // namespace

const GgufType* find_gguf_type(uint32_t number) {
  const auto found = std::find_if(kGgufTypes.begin(), kGgufTypes.end(),
                                  [&](const GgufType& type) { return type.number == number; });
  return found == kGgufTypes.end() ? nullptr : &*found;
}

}  // namespace tidemark
