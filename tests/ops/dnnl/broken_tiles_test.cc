// One process with the facts of a virtual machine that announces AMX and has no tile palette.
#include <gmock/gmock.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <sstream>

#include "ops/dnnl/primitive.h"
#include "runtime/core/errors.h"
#include "runtime/core/log.h"

namespace tidemark {
namespace {

using ::testing::HasSubstr;

TEST(BrokenTiles, AreHiddenFromOneDnn) {
  std::ostringstream logged;
  spdlog::register_logger(std::make_shared<spdlog::logger>(
      "tidemark", std::make_shared<spdlog::sinks::ostream_sink_mt>(logged)));
  CpuFacts broken = cpu_facts();
  broken.amx = true;
  broken.tile_palettes = 0;
  broken.limit = "all";

  onednn::hide_broken_tiles(broken);
  EXPECT_THAT(logged.str(), HasSubstr("oneDNN will not use AMX: the processor reports"));
  const auto used = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  const auto tiles = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_amx) &
                     ~static_cast<unsigned>(dnnl::cpu_isa::avx512_core_bf16);
  EXPECT_EQ(used & tiles, 0U);

  // oneDNN has made its choice by now.
  EXPECT_THROW(onednn::hide_broken_tiles(broken), UsageError);
}

}  // namespace
}  // namespace tidemark
