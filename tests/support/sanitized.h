// What a test may know of the build that it runs in.
#pragma once

namespace tidemark::testing {

#if defined(__SANITIZE_THREAD__)  // GCC
inline constexpr bool kThreadSanitizer = true;
#elif defined(__has_feature)  // clang
inline constexpr bool kThreadSanitizer = __has_feature(thread_sanitizer);
#else
inline constexpr bool kThreadSanitizer = false;
#endif

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddressSanitizer = true;
#elif defined(__has_feature)
inline constexpr bool kAddressSanitizer = __has_feature(address_sanitizer);
#else
inline constexpr bool kAddressSanitizer = false;
#endif

// Under a sanitizer a test takes five to thirty times as long. What a sanitizer finds is in the
// code that runs, hardly in how many random cases run it, so long tests run fewer of them.
inline constexpr bool kSanitized = kThreadSanitizer || kAddressSanitizer;
// So many cases, of `count`; and as a share of what all cases cover, what these have to.
template <class Count>
constexpr Count cases(Count count) {
  return kSanitized ? count / 8 : count;
}

}  // namespace tidemark::testing
