// The user's limit, where there is one, holds for oneDNN and for our loops.
#include <gtest/gtest.h>

#include <map>

#include "ops/dnnl/primitive.h"

namespace tidemark {
namespace {

TEST(InstructionSets, KeepToTheLimit) {
  using enum InstructionSet;
  struct Limit {
    dnnl::cpu_isa onednn;
    InstructionSet loops;
  };
  const std::map<std::string, Limit> limits{
      {"sse41", {dnnl::cpu_isa::sse41, kBaseline}},
      {"avx", {dnnl::cpu_isa::avx, kBaseline}},
      {"avx2", {dnnl::cpu_isa::avx2, kAvx2}},
      {"avx512_core", {dnnl::cpu_isa::avx512_core, kAvx512}},
      {"avx512_core_vnni", {dnnl::cpu_isa::avx512_core_vnni, kAvx512}},
      {"avx512_core_bf16", {dnnl::cpu_isa::avx512_core_bf16, kAvx512}}};
  const auto limit = limits.find(cpu_facts().limit);
  if (limit == limits.end()) GTEST_SKIP() << "ONEDNN_MAX_CPU_ISA sets no limit that is known";
  onednn::engine();
  const auto used = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  EXPECT_EQ(used & ~static_cast<unsigned>(limit->second.onednn), 0U);
  EXPECT_LE(best_for_loops(cpu_facts()), limit->second.loops);
}

}  // namespace
}  // namespace tidemark
