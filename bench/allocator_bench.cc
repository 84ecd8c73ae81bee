// The offset allocator: how fast, and how much memory it loses to fragmentation.
//
//   allocator_bench                       speed, and the built-in trace of a ResNet-50 step
//   allocator_bench bench/traces/*.txt    those recorded traces as well (format:
//   memory_trace.h)
//
// A fragmentation row reports `fragmentation` = peak_reserved / max live, 1 being perfect, for
//   best_fit       as the arena does it, all blocks alike
//   workspace_top  the same, workspaces cut from the upper ends of holes
//   plain_best_fit best fit in which the tail of the range is a hole like any other
//   first_fit      the lowest hole that fits
#include <benchmark/benchmark.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "bench/memory_trace.h"
#include "runtime/core/errors.h"
#include "runtime/memory/offset_allocator.h"

namespace tidemark {
namespace {

using namespace literals;

// One allocate and one free of a random block, `live` blocks being handed out, of `sizes`
// sizes.
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
  // Choices are drawn ahead, so that the loop times the allocator alone.
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

// A fit rule over a range without end, the slow and obvious way.
class PlainFit {
 public:
  explicit PlainFit(bool first, Bytes capacity) : first_(first) {
    holes_[Offset(0)] = capacity;
  }
  Block allocate(Bytes size) {
    size = std::max(align_up(size), kAlignment);
    auto choice = holes_.end();
    for (auto hole = holes_.begin(); hole != holes_.end(); ++hole) {
      if (hole->second < size) continue;
      if (choice == holes_.end() || hole->second < choice->second) choice = hole;
      if (first_) break;
    }
    TIDEMARK_CHECK(choice != holes_.end(), "the range is too small for the trace");
    const auto [offset, room] = *choice;
    holes_.erase(choice);
    if (room > size) holes_[offset + size] = room - size;
    high_water_ = std::max(high_water_, offset + size);
    return {offset, size};
  }
  void free(const Block& block) {
    auto here = holes_.emplace(block.offset, block.size).first;
    if (const auto next = std::next(here); next != holes_.end() && next->first == block.end()) {
      here->second += next->second;
      holes_.erase(next);
    }
    if (here == holes_.begin()) return;
    const auto previous = std::prev(here);
    if (previous->first + previous->second != here->first) return;
    previous->second += here->second;
    holes_.erase(here);
  }
  Offset high_water() const { return high_water_; }

 private:
  bool first_;
  std::map<Offset, Bytes> holes_;
  Offset high_water_;
};

enum class Rule { kBestFit, kWorkspaceTop, kPlainBestFit, kFirstFit };

Bytes peak_reserved(const MemoryTrace& trace, Rule rule) {
  const Bytes capacity = 2 * trace.total();
  OffsetAllocator allocator(capacity);
  PlainFit plain(rule == Rule::kFirstFit, capacity);
  const bool ours = rule == Rule::kBestFit || rule == Rule::kWorkspaceTop;
  std::unordered_map<int64_t, Block> live;
  for (const TraceEvent& event : trace.events) {
    if (event.kind == TraceEvent::kAllocate) {
      const bool top = event.workspace && rule == Rule::kWorkspaceTop;
      live[event.id] =
          ours ? allocator.allocate(event.size, top)->block : plain.allocate(event.size);
    } else {
      const Block block = live.at(event.id);
      live.erase(event.id);
      if (ours) {
        allocator.free(block, Fence());
      } else {
        plain.free(block);
      }
    }
  }
  return (ours ? allocator.high_water() : plain.high_water()) - Offset(0);
}

void fragmentation(benchmark::State& state, const std::shared_ptr<MemoryTrace>& trace,
                   Rule rule) {
  Bytes peak{0};
  for (auto _ : state) peak = peak_reserved(*trace, rule);
  const Bytes live = trace->max_live();
  state.counters["peak_MiB"] = to_mib(peak);
  state.counters["live_MiB"] = to_mib(live);
  state.counters["fragmentation"] =
      static_cast<double>(peak.count()) / static_cast<double>(live.count());
}

void register_trace(const std::string& name, MemoryTrace trace) {
  const auto shared = std::make_shared<MemoryTrace>(std::move(trace));
  const std::vector<std::pair<const char*, Rule>> rules{{"best_fit", Rule::kBestFit},
                                                        {"workspace_top", Rule::kWorkspaceTop},
                                                        {"plain_best_fit", Rule::kPlainBestFit},
                                                        {"first_fit", Rule::kFirstFit}};
  for (const auto& [rule_name, rule] : rules) {
    benchmark::RegisterBenchmark(
        ("fragmentation/" + name + "/" + rule_name).c_str(),
        [shared, rule = rule](benchmark::State& state) { fragmentation(state, shared, rule); })
        ->Unit(benchmark::kMillisecond);
  }
}

int run(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  for (const int steps : {1, 3}) {
    register_trace("resnet50-like-" + std::to_string(steps) + "-steps",
                   resnet_like_trace({.batch = 8, .steps = steps}));
  }
  register_trace("resnet50-like-fused-update", resnet_like_trace({.update_in_backward = true}));
  for (int i = 1; i < argc; ++i) {
    const std::string path = argv[i];
    try {
      register_trace(path.substr(path.rfind('/') + 1), read_trace(path));
    } catch (const DataError& error) {
      std::cerr << error.what() << "\n";
      return 2;
    }
  }
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

}  // namespace
}  // namespace tidemark

int main(int argc, char** argv) { return tidemark::run(argc, argv); }
