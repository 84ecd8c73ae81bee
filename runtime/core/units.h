// Units as types: a number of bytes is not a number of nanoseconds, nor an address.
//
// All are signed 64-bit counts, so differences are safe. Threads: values, no state.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace tidemark {

template <class Tag>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(int64_t count) : count_(count) {}

  constexpr int64_t count() const { return count_; }
  constexpr auto operator<=>(const Quantity&) const = default;

  constexpr Quantity& operator+=(Quantity other) { return count_ += other.count_, *this; }
  constexpr Quantity& operator-=(Quantity other) { return count_ -= other.count_, *this; }
  friend constexpr Quantity operator+(Quantity a, Quantity b) {
    return Quantity(a.count_ + b.count_);
  }
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    return Quantity(a.count_ - b.count_);
  }
  friend constexpr Quantity operator*(Quantity a, int64_t k) { return Quantity(a.count_ * k); }
  friend constexpr Quantity operator*(int64_t k, Quantity a) { return Quantity(a.count_ * k); }

 private:
  int64_t count_ = 0;
};

using Bytes = Quantity<struct BytesTag>;
using Nanos = Quantity<struct NanosTag>;

// A place in an arena, in bytes from its start. Offset + Bytes is the next place.
class Offset {
 public:
  constexpr Offset() = default;
  constexpr explicit Offset(int64_t value) : value_(value) {}
  constexpr int64_t value() const { return value_; }
  constexpr auto operator<=>(const Offset&) const = default;
  friend constexpr Offset operator+(Offset o, Bytes b) { return Offset(o.value_ + b.count()); }
  friend constexpr Offset operator-(Offset o, Bytes b) { return Offset(o.value_ - b.count()); }
  friend constexpr Bytes operator-(Offset a, Offset b) { return Bytes(a.value_ - b.value_); }

 private:
  int64_t value_ = 0;
};

// Every block in every arena starts and ends on this boundary.
inline constexpr Bytes kAlignment{512};

constexpr Bytes align_up(Bytes bytes, Bytes alignment = kAlignment) {
  const int64_t a = alignment.count();
  return Bytes((bytes.count() + a - 1) / a * a);
}
constexpr Bytes align_down(Bytes bytes, Bytes alignment = kAlignment) {
  return Bytes(bytes.count() / alignment.count() * alignment.count());
}

// `share` of `bytes`, rounded down to kAlignment.
constexpr Bytes share_of(Bytes bytes, double share) {
  return align_down(Bytes(static_cast<int64_t>(static_cast<double>(bytes.count()) * share)));
}

namespace literals {
constexpr Bytes operator""_B(unsigned long long n) { return Bytes(static_cast<int64_t>(n)); }
constexpr Bytes operator""_KiB(unsigned long long n) {
  return Bytes(static_cast<int64_t>(n << 10));
}
constexpr Bytes operator""_MiB(unsigned long long n) {
  return Bytes(static_cast<int64_t>(n << 20));
}
constexpr Bytes operator""_GiB(unsigned long long n) {
  return Bytes(static_cast<int64_t>(n << 30));
}
}  // namespace literals

constexpr double to_mib(Bytes b) { return static_cast<double>(b.count()) / (1 << 20); }
constexpr double to_ms(Nanos t) { return static_cast<double>(t.count()) * 1e-6; }
constexpr double to_seconds(Nanos t) { return static_cast<double>(t.count()) * 1e-9; }

// "1.50 GiB", "312.0 MiB", "4.0 KiB", "17 B".
std::string format_bytes(Bytes bytes);
// As format_bytes(), adding the exact number if `other` differs but would look the same: "4.0
// MiB (4194816 bytes)".
std::string format_unlike(Bytes bytes, Bytes other);

// "1073741824", "1024MiB", "1.5GiB", "512 KiB", case-insensitive. Throws UsageError on anything
// else, on negative numbers and on overflow.
Bytes parse_bytes(std::string_view text);

}  // namespace tidemark
