#include "runtime/core/located_json.h"

namespace tidemark {

std::string describe_json_fault(const std::exception& error) {
  constexpr size_t kMaxLength = 160;
  std::string text = error.what();  // "[json.exception.parse_error.101] parse error at ..."
  if (const size_t end = text.find("] "); text.starts_with('[') && end != std::string::npos) {
    text.erase(0, end + 2);
  }
  if (text.size() > kMaxLength) text = text.substr(0, kMaxLength) + "...";
  return text;
}

}  // namespace tidemark
