#include "runtime/core/units.h"

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>

#include "runtime/core/errors.h"

namespace tidemark {

std::string format_bytes(Bytes bytes) {
  const double n = static_cast<double>(bytes.count());
  const double size = std::abs(n);
  std::array<char, 48> text{};
  if (size >= 1073741824.0) {
    std::snprintf(text.data(), text.size(), "%.2f GiB", n / 1073741824.0);
  } else if (size >= 1048576.0) {
    std::snprintf(text.data(), text.size(), "%.1f MiB", n / 1048576.0);
  } else if (size >= 1024.0) {
    std::snprintf(text.data(), text.size(), "%.1f KiB", n / 1024.0);
  } else {
    std::snprintf(text.data(), text.size(), "%lld B", static_cast<long long>(bytes.count()));
  }
  return text.data();
}

std::string format_unlike(Bytes bytes, Bytes other) {
  std::string text = format_bytes(bytes);
  if (bytes == other || text != format_bytes(other)) return text;
  return text + " (" + std::to_string(bytes.count()) + " bytes)";
}

Bytes parse_bytes(std::string_view text) {
  const std::string whole(text);
  auto bad = [&] {
    return UsageError("'" + whole +
                      "' is not a size; write bytes, or a number with KiB, MiB or GiB");
  };
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number) || number < 0) throw bad();
  std::string unit;
  for (char c : text.substr(static_cast<size_t>(rest - text.data()))) {
    if (c != ' ') unit += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  constexpr std::array<std::pair<const char*, double>, 5> kUnits{
      {{"", 1.0}, {"b", 1.0}, {"kib", 1024.0}, {"mib", 1048576.0}, {"gib", 1073741824.0}}};
  for (const auto& [name, scale] : kUnits) {
    if (unit != name) continue;
    const double bytes = std::floor(number * scale);
    if (bytes > 9.0e18) throw bad();
    return Bytes(static_cast<int64_t>(bytes));
  }
  throw bad();
}

}  // namespace tidemark
