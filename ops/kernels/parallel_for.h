// Loops over an index space, split among the threads of the compute stream by Thrust.
//
// Thrust stays in parallel_for.cc: a body is called once for each chunk, so that its own loop
// is a plain one that the compiler vectorises, and headers stay cheap to include.
//
// How a range is split never shows in results: bodies write disjoint outputs, and reductions
// take chunks that the shape alone decides.
//
// Threads: the compute stream's.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace tidemark {

// Elements below which waking the other threads costs more than it saves.
inline constexpr int64_t kSerialElements = 32 << 10;

// Lets the compiler vectorise the next loop without checking that its arrays are apart. They
// may also be the very same array: each iteration then reads and writes its own element.
// (Clang's counterpart insists on vectorising, and warns where it cannot.)
#if defined(__GNUC__) && !defined(__clang__)
#define TIDEMARK_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#else
#define TIDEMARK_INDEPENDENT_ITERATIONS
#endif

namespace detail {
using ChunkBody = void (*)(const void* body, int64_t begin, int64_t end);
void run_chunks(int64_t n, int64_t grain, ChunkBody call, const void* body);
}  // namespace detail

// body(begin, end) for ranges that cover [0, n), about one for each thread and none much below
// half of `grain`; serially if n <= grain. `body` must not throw.
template <class Body>
void parallel_chunks(int64_t n, int64_t grain, const Body& body) {
  detail::run_chunks(
      n, grain,
      [](const void* object, int64_t begin, int64_t end) {
        (*static_cast<const Body*>(object))(begin, end);
      },
      std::addressof(body));
}

// f(i) for each i in [0, n), in any order.
template <class F>
void parallel_for(int64_t n, const F& f) {
  parallel_chunks(n, kSerialElements, [&f](int64_t begin, int64_t end) {
    TIDEMARK_INDEPENDENT_ITERATIONS
    for (int64_t i = begin; i < end; ++i) f(i);
  });
}

// f(i) for tasks that are themselves loops over about `elements_each` elements.
template <class F>
void parallel_tasks(int64_t n, int64_t elements_each, const F& f) {
  const int64_t grain = kSerialElements / (elements_each > 0 ? elements_each : 1);
  parallel_chunks(n, grain > 0 ? grain : 1, [&f](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) f(i);
  });
}

}  // namespace tidemark
