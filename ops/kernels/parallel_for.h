// Loops over an index space, split among the threads of the compute stream by Thrust.
//
// Only parallel_for.cc includes Thrust. The body is called once per chunk, so its own loop is a
// plain loop that the compiler vectorises, and this header stays cheap to include.
//
// The split never affects results: bodies write disjoint outputs, and the shape alone decides
// the chunks of a reduction.
//
// Threads: the compute stream's.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace tidemark {

// For fewer elements, waking the other threads costs more than it saves.
inline constexpr int64_t kSerialElements = 32 << 10;

// Lets the compiler vectorise the next loop without checking whether its arrays overlap. Two
// arrays may also be the very same array: each iteration then reads and writes only its own
// element. (Clang's counterpart insists on vectorising, and warns where it cannot.)
#if defined(__GNUC__) && !defined(__clang__)
#define TIDEMARK_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#else
#define TIDEMARK_INDEPENDENT_ITERATIONS
#endif

namespace detail {
using ChunkBody = void (*)(const void* body, int64_t begin, int64_t end);
void run_chunks(int64_t n, int64_t grain, ChunkBody call, const void* body);
}  // namespace detail

// Calls body(begin, end) for ranges that cover [0, n): about one range per thread, none much
// smaller than half of `grain`. Runs serially if n <= grain. `body` must not throw.
template <class Body>
void parallel_chunks(int64_t n, int64_t grain, const Body& body) {
  detail::run_chunks(
      n, grain,
      [](const void* object, int64_t begin, int64_t end) {
        (*static_cast<const Body*>(object))(begin, end);
      },
      std::addressof(body));
}

// Calls f(i) for each i in [0, n), in any order.
template <class F>
void parallel_for(int64_t n, const F& f) {
  parallel_chunks(n, kSerialElements, [&f](int64_t begin, int64_t end) {
    TIDEMARK_INDEPENDENT_ITERATIONS
    for (int64_t i = begin; i < end; ++i) f(i);
  });
}

// Calls f(i) for tasks that are themselves loops over about `elements_each` elements.
template <class F>
void parallel_tasks(int64_t n, int64_t elements_each, const F& f) {
  const int64_t grain = kSerialElements / (elements_each > 0 ? elements_each : 1);
  parallel_chunks(n, grain > 0 ? grain : 1, [&f](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) f(i);
  });
}

}  // namespace tidemark
