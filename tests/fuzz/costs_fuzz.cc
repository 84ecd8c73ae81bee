// Any bytes as a file of costs. A DataError within it is fine; what is read is written and read
// again as it was.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>

#include "runtime/core/errors.h"
#include "runtime/cost/cost_table.h"

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
  try {
    table = tidemark::parse_costs("input", {reinterpret_cast<const char*>(data), size});
  } catch (const tidemark::DataError& error) {
    if (error.offset() < -1 || error.offset() > static_cast<int64_t>(size)) std::abort();
  }
  if (table) use(*table);
  return 0;
}
