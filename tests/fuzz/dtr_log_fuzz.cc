// Any bytes as a log of DTR's. A DataError within it is fine; what is read must hang together.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "examples/dtr_log/dtr_log.h"
#include "tests/fuzz/within_input.h"

namespace {

using Kind = tidemark::DtrLog::Step::Kind;

// Storages are written once, before they are read, and freed at most once, after that.
void check(const tidemark::DtrLog& log) {
  std::vector<int> state(log.storages.size(), 0);  // 0: to come, 1: there, 2: gone
  const auto move = [&](uint32_t storage, int from, int to) {
    if (storage >= state.size() || state[storage] != from) std::abort();
    state[storage] = to;
  };
  for (const tidemark::DtrLog::Step& step : log.steps) {
    for (const uint32_t input : step.inputs) move(input, 1, step.kind == Kind::kFree ? 2 : 1);
    for (const uint32_t output : step.outputs) move(output, 0, 1);
  }
  for (const uint32_t live : log.live) move(live, 1, 3);
  for (const int each : state) {
    if (each < 2) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  allow_errors_within(size, [&] {
    check(tidemark::parse_dtr_log("input", {reinterpret_cast<const char*>(data), size}));
  });
  return 0;
}
