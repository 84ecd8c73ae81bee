// Counts what operator new gives out, in the whole program. For one source file of a program:
// it defines operator new.
#pragma once

#include <malloc.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <new>

#include "runtime/core/units.h"

namespace tidemark::testing {

// Relaxed: only sums are compared, between calls that wait for the work of other threads.
inline std::atomic<int64_t> heap_now{0}, heap_peak{0};

inline void* counted(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  const auto size = static_cast<int64_t>(malloc_usable_size(memory));
  const int64_t now = heap_now.fetch_add(size, std::memory_order_relaxed) + size;
  int64_t peak = heap_peak.load(std::memory_order_relaxed);
  while (now > peak && !heap_peak.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
  return memory;
}

inline void freed(void* memory) {
  const auto size = memory ? static_cast<int64_t>(malloc_usable_size(memory)) : 0;
  heap_now.fetch_sub(size, std::memory_order_relaxed);
  std::free(memory);
}

// The most that was on the heap at once while `work` ran, beyond what was there before.
inline Bytes heap_of(const std::function<void()>& work) {
  const int64_t before = heap_now.load();
  heap_peak = before;
  work();
  return Bytes(heap_peak.load() - before);
}

}  // namespace tidemark::testing

void* operator new(size_t size) { return tidemark::testing::counted(std::malloc(size)); }
void* operator new[](size_t size) { return tidemark::testing::counted(std::malloc(size)); }
void* operator new(size_t size, std::align_val_t alignment) {
  const auto to = static_cast<size_t>(alignment);
  return tidemark::testing::counted(std::aligned_alloc(to, (size + to - 1) / to * to));
}
void operator delete(void* memory) noexcept { tidemark::testing::freed(memory); }
void operator delete[](void* memory) noexcept { tidemark::testing::freed(memory); }
void operator delete(void* memory, size_t) noexcept { tidemark::testing::freed(memory); }
void operator delete[](void* memory, size_t) noexcept { tidemark::testing::freed(memory); }
void operator delete(void* memory, std::align_val_t) noexcept {
  tidemark::testing::freed(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  tidemark::testing::freed(memory);
}
