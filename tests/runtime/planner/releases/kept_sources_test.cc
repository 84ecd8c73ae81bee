// Tests when storages really end while recipes are kept.
#include "runtime/planner/releases/kept_sources.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/support/trace_builder.h"

namespace tidemark::planner::testing {

using namespace tidemark::testing;  // NOLINT(google-build-using-namespace)

namespace {

// The operator after which the storage ends. None: it stays.
std::optional<uint32_t> gone_after(const StepTrace& trace, uint32_t storage) {
  for (uint32_t k = 0; k < trace.ops.size(); ++k) {
    for (const uint32_t released : trace.ops[k].released) {
      if (released == storage) return k;
    }
  }
  return std::nullopt;
}

//   upload x    a = f(x)    b = g(a)    idle    h(b)
TEST(KeptSources, AnUploadStaysForAsLongAsWhatWasComputedFromIt) {
  TraceBuilder record;
  const uint32_t x = record.upload(), a = record.call({x}), b = record.call({a});
  record.idle(1);
  record.run({b});
  const StepTrace program = record.trace(), kept = with_kept_sources(program);
  EXPECT_EQ(gone_after(program, x), 1U);
  EXPECT_EQ(gone_after(kept, x), 4U) << "b can be computed from a, and a from x";
  EXPECT_EQ(gone_after(kept, a), gone_after(program, a)) << "it can be computed itself";
  EXPECT_EQ(gone_after(kept, b), gone_after(program, b));
}

// The reader is written in place, so it cannot be recomputed in any case.
TEST(KeptSources, AnUploadGoesOnceItsReadersAreWritten) {
  TraceBuilder record;
  const uint32_t x = record.upload(), a = record.call({x});
  record.idle(1);
  record.update(a);
  record.idle(1);
  record.run({a});
  EXPECT_EQ(gone_after(with_kept_sources(record.trace()), x), 3U);
}

// A storage that was written in place has no recipe either, and stays like an upload.
TEST(KeptSources, WhatWasWrittenStaysForItsReaders) {
  TraceBuilder record;
  const uint32_t a = record.call({});
  record.update(a);
  const uint32_t b = record.call({a});
  record.idle(1);
  record.run({b});
  const StepTrace program = record.trace();
  EXPECT_EQ(gone_after(program, a), 2U);
  EXPECT_EQ(gone_after(with_kept_sources(program), a), 4U);
}

TEST(KeptSources, CallsThatWriteKeepNothing) {
  TraceBuilder record;
  const uint32_t x = record.upload(), w = record.outside(1, /*persistent=*/true);
  record.run({w, x});
  record.writes(w);
  record.idle(2);
  EXPECT_EQ(gone_after(with_kept_sources(record.trace()), x), 1U);
}

}  // namespace
}  // namespace tidemark::planner::testing
