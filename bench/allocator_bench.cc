// Measures the speed of the offset allocator. allocator_fragmentation measures its
// fragmentation.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <random>
#include <vector>

#include "runtime/memory/offset_allocator.h"

namespace tidemark {
namespace {

using namespace literals;

// One iteration frees a random block and allocates another. `live` blocks, of `sizes` sizes,
// are allocated all the time.
void BM_AllocateFree(benchmark::State& state) {
  const size_t live = static_cast<size_t>(state.range(0));
  const int64_t sizes = state.range(1);
  std::mt19937_64 random(1);
  std::vector<Bytes> size(static_cast<size_t>(sizes));
  for (Bytes& s : size)
    s = Bytes(512 * std::uniform_int_distribution<int64_t>(1, 4096)(random));
  OffsetAllocator allocator(Bytes(1) * (int64_t{1} << 40));
  std::vector<Block> blocks;
  for (size_t i = 0; i < 2 * live; ++i) {
    blocks.push_back(allocator.allocate(size[random() % size.size()])->block);
  }
  std::shuffle(blocks.begin(), blocks.end(), random);
  for (size_t i = 0; i < live; ++i) {
    allocator.free(blocks.back(), Fence());
    blocks.pop_back();
  }
  // Choices are drawn in advance, so that the loop times only the allocator.
  constexpr size_t kChoices = 1 << 16;
  std::vector<std::pair<size_t, Bytes>> choices(kChoices);
  for (auto& [victim, s] : choices) {
    victim = random() % live;
    s = size[random() % size.size()];
  }
  size_t i = 0;
  for (auto _ : state) {
    const auto& [victim, s] = choices[i++ % kChoices];
    allocator.free(blocks[victim], Fence());
    blocks[victim] = allocator.allocate(s)->block;
  }
  state.counters["holes"] = static_cast<double>(allocator.holes().size());
}
BENCHMARK(BM_AllocateFree)
    ->ArgNames({"live", "sizes"})
    ->Args({1000, 64})
    ->Args({10000, 1})
    ->Args({10000, 64})
    ->Args({10000, 4096})
    ->Args({100000, 64});

}  // namespace
}  // namespace tidemark

BENCHMARK_MAIN();
