// An operator's attributes: a plain struct of int64_t and double members, held by value.
//
// Attributes are part of a call's signature, which determines the kernel, its workspace and its
// cost. Values that change from step to step without changing the kernel (a learning rate, a
// random offset) go into Scalars instead; a captured graph takes them as inputs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace tidemark {

class Attrs {
 public:
  Attrs() = default;
  template <class T>
  Attrs(const T& value) {  // NOLINT: a call reads best with the bare struct
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kCapacity);
    static_assert(alignof(T) == 8,
                  "members are int64_t or double, so that there is no padding");
    std::memcpy(bytes_.data(), &value, sizeof(T));
    size_ = sizeof(T);
  }
  // REQUIRES: T is the struct that this Attrs was constructed from.
  template <class T>
  const T& as() const {
    return *reinterpret_cast<const T*>(bytes_.data());
  }
  const std::byte* data() const { return bytes_.data(); }
  size_t size() const { return size_; }

 private:
  static constexpr size_t kCapacity = 128;
  alignas(8) std::array<std::byte, kCapacity> bytes_{};
  size_t size_ = 0;
};

// Values that vary between calls of one signature.
using Scalars = std::array<double, 8>;

}  // namespace tidemark
