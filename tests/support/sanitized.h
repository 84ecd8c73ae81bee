// What a test may know of the build that it runs in.
#pragma once

namespace tidemark::testing {

// Under a sanitizer a test takes five to thirty times as long. What a sanitizer finds is in the
// code that runs, hardly in how many random cases run it, so long tests run fewer of them.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace tidemark::testing
