// Which instruction sets kernels on the CPU use: our own loops, and oneDNN.
//
// The processor may announce more than works. Some virtual machines set the bits of AMX's tiles
// without a tile palette, so that tile instructions fault; oneDNN believes the bits.
//
// ONEDNN_MAX_CPU_ISA (or DNNL_MAX_CPU_ISA), oneDNN's own variable, is a limit for our loops
// too: SSE41 and AVX leave the baseline, AVX2 and the values that begin with it or with
// AVX512_MIC leave AVX2, and the others leave all.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tidemark {

enum class InstructionSet { kBaseline, kAvx2, kAvx512 };

// What the processor, the operating system and the user say. Plain values, so that a test can
// say something else.
struct CpuFacts {
  bool avx2 = false;             // AVX2 and FMA, and the system saves their registers
  bool avx512 = false;           // AVX-512 F, VL and DQ, likewise
  bool amx = false;              // the processor announces AMX's tiles
  uint32_t tile_palettes = 0;    // the highest one (CPUID leaf 0x1D); 0: there are none
  bool tiles_saved = false;      // by the system (XCR0)
  bool tiles_permitted = false;  // to this process, by the kernel
  std::string limit{};           // ONEDNN_MAX_CPU_ISA in lower case; empty: none
};

// Of this process, read at the first call. Asks the kernel's permission for tiles, as oneDNN
// would, if the rest says that they work.
const CpuFacts& cpu_facts();

// The best for our loops.
InstructionSet best_for_loops(const CpuFacts& facts);

// Why oneDNN must not use the tiles that the processor announces. Empty: it may, or it will
// not.
std::string_view why_no_tiles(const CpuFacts& facts);

}  // namespace tidemark
