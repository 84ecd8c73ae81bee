#include "ops/kernels/cpu_isa.h"

#include <gmock/gmock.h>

#include <vector>

namespace tidemark {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A processor with AMX that works.
CpuFacts newest() {
  return {.avx2 = true,
          .avx512 = true,
          .amx = true,
          .tile_palettes = 1,
          .tiles_saved = true,
          .tiles_permitted = true};
}

TEST(Tiles, AreUsedWhereTheyWork) {
  EXPECT_THAT(why_no_tiles(newest()), IsEmpty());
  EXPECT_THAT(why_no_tiles({}), IsEmpty()) << "nobody announces them";
}

TEST(Tiles, AreHiddenWhereOneConditionFails) {
  // As on virtual machines whose host hides leaf 0x1D and forgets the bits of leaf 7: the
  // kernel may permit what cannot be done.
  CpuFacts facts = newest();
  facts.tile_palettes = 0;
  EXPECT_THAT(why_no_tiles(facts), HasSubstr("palette"));
  facts = newest();
  facts.tiles_saved = false;
  EXPECT_THAT(why_no_tiles(facts), HasSubstr("does not save"));
  facts = newest();
  facts.tiles_permitted = false;
  EXPECT_THAT(why_no_tiles(facts), HasSubstr("permit"));
}

TEST(Tiles, NeedNotBeHiddenBelowALimitOfTheUser) {
  CpuFacts facts = newest();
  facts.tile_palettes = 0;
  for (const char* limit : {"sse41", "avx", "avx2", "avx2_vnni", "avx512_mic", "avx512_core",
                            "avx512_core_vnni", "avx512_core_bf16", "avx512_core_fp16"}) {
    facts.limit = limit;
    EXPECT_THAT(why_no_tiles(facts), IsEmpty()) << limit;
  }
  for (const char* limit :
       {"", "all", "default", "nonsense", "avx512_core_amx", "avx512_core_amx_fp16"}) {
    facts.limit = limit;
    EXPECT_THAT(why_no_tiles(facts), HasSubstr("palette")) << limit;
  }
}

TEST(Loops, AreTheBestOfTheProcessor) {
  using enum InstructionSet;
  EXPECT_EQ(best_for_loops({}), kBaseline);
  EXPECT_EQ(best_for_loops({.avx2 = true}), kAvx2);
  EXPECT_EQ(best_for_loops({.avx2 = true, .avx512 = true}), kAvx512);
  // Hidden tiles take nothing else away.
  CpuFacts facts = newest();
  facts.tile_palettes = 0;
  EXPECT_EQ(best_for_loops(facts), kAvx512);
}

TEST(Loops, KeepToALimitOfTheUser) {
  using enum InstructionSet;
  const std::vector<std::pair<const char*, InstructionSet>> cases{
      {"sse41", kBaseline},         {"avx", kBaseline},       {"avx2", kAvx2},
      {"avx2_vnni", kAvx2},         {"avx2_vnni_2", kAvx2},   {"avx512_mic", kAvx2},
      {"avx512_mic_4ops", kAvx2},   {"avx512_core", kAvx512}, {"avx512_core_bf16", kAvx512},
      {"avx512_core_amx", kAvx512}, {"all", kAvx512},         {"nonsense", kAvx512}};
  for (const auto& [limit, best] : cases) {
    CpuFacts facts = newest();
    facts.limit = limit;
    EXPECT_EQ(best_for_loops(facts), best) << limit;
    facts.avx512 = false;
    EXPECT_LE(best_for_loops(facts), kAvx2) << limit;
    facts.avx2 = false;
    EXPECT_EQ(best_for_loops(facts), kBaseline) << limit;
  }
}

}  // namespace
}  // namespace tidemark
