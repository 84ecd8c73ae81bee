// Any bytes as a file of costs. A DataError within it is fine; what is read is written and read
// again as it was.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>

#include "runtime/cost/cost_table.h"
#include "tests/fuzz/within_input.h"

namespace {

void use(const tidemark::CostTable& table) {
  for (const auto& [signature, op] : table.operators) {
    if (op.time <= tidemark::Nanos(0)) std::abort();
  }
  if (tidemark::parse_costs("again", to_json(table)) != table) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::optional<tidemark::CostTable> table;
  allow_errors_within(size, [&] {
    table = tidemark::parse_costs("input", {reinterpret_cast<const char*>(data), size});
  });
  if (table) use(*table);
  return 0;
}
