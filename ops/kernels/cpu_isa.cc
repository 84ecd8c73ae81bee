#include "ops/kernels/cpu_isa.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace tidemark {
namespace {

std::string limit_of_user() {
  for (const char* name : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"}) {
    if (const char* const value = std::getenv(name); value && *value) {
      std::string limit = value;
      std::transform(limit.begin(), limit.end(), limit.begin(),
                     [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      return limit;
    }
  }
  return "";
}

bool limit_allows_tiles(std::string_view limit) {
  if (limit.find("amx") != std::string_view::npos) return true;
  // oneDNN treats a value that it does not know as no limit.
  return !limit.starts_with("sse41") && !limit.starts_with("avx");
}

#if defined(__x86_64__)
struct Registers {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

// Returns zeros for a leaf that the processor does not have.
Registers cpuid(uint32_t leaf) {
  Registers r;
  if (!__get_cpuid_count(leaf, 0, &r.eax, &r.ebx, &r.ecx, &r.edx)) return {};
  return r;
}

// XCR0: the registers that the operating system saves.
uint64_t saved_state() {
  constexpr uint32_t kOsXsave = 1U << 27;
  if ((cpuid(1).ecx & kOsXsave) == 0) return 0;
  uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

bool permit_tiles() {
#if defined(__linux__)
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}
#endif

CpuFacts read_cpu_facts() {
  CpuFacts facts;
  facts.limit = limit_of_user();
#if defined(__x86_64__)
  // These builtins check XCR0 as well.
  facts.avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  facts.avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                 __builtin_cpu_supports("avx512dq");
  constexpr uint32_t kAmx = 1U << 22 | 1U << 24 | 1U << 25;  // bf16, tiles, int8
  constexpr uint64_t kTiles = 3ULL << 17;                    // configuration and data
  facts.amx = (cpuid(7).edx & kAmx) != 0;
  facts.tile_palettes = cpuid(0x1D).eax;
  facts.tiles_saved = (saved_state() & kTiles) == kTiles;
  facts.tiles_permitted = facts.amx && facts.tile_palettes > 0 && facts.tiles_saved &&
                          limit_allows_tiles(facts.limit) && permit_tiles();
#endif
  return facts;
}

}  // namespace

const CpuFacts& cpu_facts() {
  static const CpuFacts facts = read_cpu_facts();
  return facts;
}

InstructionSet best_for_loops(const CpuFacts& facts) {
  const std::string_view limit = facts.limit;
  if (limit == "sse41" || limit == "avx") return InstructionSet::kBaseline;
  const bool only_avx2 = limit.starts_with("avx2") || limit.starts_with("avx512_mic");
  if (facts.avx512 && !only_avx2) return InstructionSet::kAvx512;
  return facts.avx2 ? InstructionSet::kAvx2 : InstructionSet::kBaseline;
}

std::string_view why_no_tiles(const CpuFacts& facts) {
  if (!facts.amx || !limit_allows_tiles(facts.limit)) return "";
  if (facts.tile_palettes == 0) return "the processor reports AMX tiles but no tile palette";
  if (!facts.tiles_saved) return "the operating system does not save AMX tiles";
  if (!facts.tiles_permitted) return "the kernel does not permit AMX tiles";
  return "";
}

}  // namespace tidemark
