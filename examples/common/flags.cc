#include "examples/common/flags.h"

#include <cmath>

#include "runtime/core/errors.h"

namespace tidemark {

Bytes Budget::resolve(Bytes unmanaged_peak) const {
  if (bytes) return *bytes;
  return align_down(Bytes(
      static_cast<int64_t>(std::floor(share * static_cast<double>(unmanaged_peak.count())))));
}

MemoryAllowance parse_memory(std::string_view text) {
  if (text == "auto") return {};
  try {
    return {.bytes = parse_bytes(text)};
  } catch (const UsageError& error) {
    throw UsageError(std::string(error.what()) + ", or auto");
  }
}

Budget parse_budget(std::string_view text) {
  if (text.empty() || text.back() != '%') {
    const Bytes bytes = parse_bytes(text);
    if (bytes > Bytes(0) && bytes <= Bytes(100)) {
      throw UsageError("'" + std::string(text) + "' would be " + std::to_string(bytes.count()) +
                       " bytes; a share is written 50%");
    }
    return {.bytes = bytes};
  }
  const std::string number(text.substr(0, text.size() - 1));
  size_t end = 0;
  double percent = 0;
  try {
    percent = std::stod(number, &end);
  } catch (const std::exception&) {
  }
  if (end != number.size() || !(percent > 0 && percent <= 1000)) {
    throw UsageError("'" + std::string(text) + "' is not a share such as 50%");
  }
  return {.bytes = std::nullopt, .share = percent / 100};
}

}  // namespace tidemark
