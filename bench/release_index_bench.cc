// Measures the time that the filter takes to choose among many live storages. In a sixteenth of
// the calls the best storage of a size is pinned. The chosen storage is used again, as in
// training.
//
//   release_index_bench --benchmark_filter=10000
#include <benchmark/benchmark.h>

#include <random>
#include <vector>

#include "runtime/policy/release_index.h"

namespace tidemark {
namespace {

struct Live {
  explicit Live(int64_t count, int64_t sizes) {
    std::mt19937 random(1);
    for (int64_t i = 0; i < count; ++i) {
      const auto id = static_cast<uint32_t>(i + 1);
      storages.push_back(make_intrusive<Storage>(nullptr, id, id,
                                                 kAlignment * (1 + random() % sizes),
                                                 Category::kActivation, "bench"));
      storages.back()->last_access = now;
      index.add(*storages.back());
      now += Nanos(1000);
    }
  }
  std::vector<IntrusivePtr<Storage>> storages;
  ReleaseIndex index;
  Nanos now{0};
};

void choose(benchmark::State& state, FilterFn score) {
  Live live(state.range(0), state.range(1));
  uint64_t turn = 0;
  for (auto _ : state) {
    const bool some_pinned = ++turn % 16 == 0;
    Storage* best = live.index.best(score, live.now, [&](const Storage& storage) {
      return !some_pinned || storage.id() % 8 != 0;
    });
    live.now += Nanos(1000);
    best->last_access = live.now;
    live.index.touch(*best);
    benchmark::DoNotOptimize(best);
  }
}

void remove_and_add(benchmark::State& state) {
  Live live(state.range(0), state.range(1));
  size_t i = 0;
  for (auto _ : state) {
    Storage& storage = *live.storages[i++ * 7919 % live.storages.size()];
    live.index.remove(storage);
    live.now += Nanos(1000);
    storage.last_access = live.now;
    live.index.add(storage);
  }
}

BENCHMARK_CAPTURE(choose, base, base_score)
    ->Args({1000, 64})
    ->Args({10000, 64})
    ->Args({10000, 8});
BENCHMARK_CAPTURE(choose, lru, lru_score)->Args({10000, 64});
BENCHMARK_CAPTURE(choose, greedy, greedy_score)->Args({10000, 64});
BENCHMARK(remove_and_add)->Args({10000, 64});

}  // namespace
}  // namespace tidemark

BENCHMARK_MAIN();
