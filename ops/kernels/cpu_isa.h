// The instruction sets that CPU kernels use: our own loops, and oneDNN.
//
// A processor may report instructions that do not work. Some virtual machines set the AMX tile
// bits without a tile palette; tile instructions then fault, but oneDNN trusts the bits.
//
// oneDNN's own variable ONEDNN_MAX_CPU_ISA (or DNNL_MAX_CPU_ISA) limits our loops too: SSE41
// and AVX select the baseline; AVX2, and values that begin with AVX2 or AVX512_MIC, select
// AVX2; any other value allows everything.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tidemark {

enum class InstructionSet { kBaseline, kAvx2, kAvx512 };

// What the processor, the operating system and the user report. Plain values, so that a test
// can substitute others.
struct CpuFacts {
  bool avx2 = false;             // AVX2 and FMA, and the system saves their registers
  bool avx512 = false;           // AVX-512 F, VL and DQ, likewise
  bool amx = false;              // the processor announces AMX's tiles
  uint32_t tile_palettes = 0;    // the highest palette (CPUID leaf 0x1D); 0: none
  bool tiles_saved = false;      // by the system (XCR0)
  bool tiles_permitted = false;  // to this process, by the kernel
  std::string limit{};           // ONEDNN_MAX_CPU_ISA in lower case; empty: none
};

// This process's facts, read at the first call. If the other facts say that tiles work, the
// call asks the kernel for permission to use them, as oneDNN would.
const CpuFacts& cpu_facts();

// The best instruction set for our loops.
InstructionSet best_for_loops(const CpuFacts& facts);

// The reason why oneDNN must not use the tiles that the processor reports. Empty if oneDNN may
// use them, or would not use them anyway.
std::string_view why_no_tiles(const CpuFacts& facts);

}  // namespace tidemark
