// The stage of the literal scenarios: a session with an arena of a few units, one unit being
// the smallest block (128 words of a toy operator). Early start and prefetching are off unless
// a scenario is about them, so that storages go and come only when told to. Freed blocks are
// poisoned, except where the order of streams matters: poisoning makes compute wait for copies.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/errors.h"
#include "runtime/residency/residency.h"
#include "tests/support/faulty_device.h"
#include "tests/support/toy_program.h"

namespace tidemark::testing {

using namespace tidemark::literals;

inline constexpr int64_t kUnitWords = 128;

constexpr Bytes units(int64_t n) { return kAlignment * n; }

struct SceneOptions {
  int64_t arena = 64;  // in units, as are the limits
  int64_t host = 0;
  int64_t disk = 0;
  bool evict = true;
  bool known_to_fit = false;
  std::string policy = "delta";
  bool overlap = true;
  bool compact = true;
  bool poison = true;
  bool learn_costs = true;  // off: schedules repeat
  DeltaOptions delta{.early_start = 0, .prefetch = 0};
};

inline SessionOptions session_options(const SceneOptions& scene) {
  SessionOptions options;
  options.threads = 1;
  options.budget = units(scene.arena);
  options.host_limit = units(scene.host);
  options.disk_limit = units(scene.disk);
  options.policy = scene.policy;
  options.delta = scene.delta;
  options.residency = {.known_to_fit = scene.known_to_fit,
                       .evict = scene.evict,
                       .overlap = scene.overlap,
                       .compact = scene.compact,
                       .poison = scene.poison};
  options.residency.learn_costs = scene.learn_costs;
  return options;
}

class Scene {
 public:
  explicit Scene(const SceneOptions& options = {})
      : Scene(options, std::make_unique<FaultyDevice>(make_cpu_device({.threads = 1}))) {}
  // `device` can make calls fail or wait.
  Scene(const SceneOptions& options, std::unique_ptr<FaultyDevice> device)
      : device_(device.get()), session_(session_options(options), std::move(device)) {}

  Session& session() { return session_; }
  Residency& residency() { return session_.residency(); }
  FaultyDevice& device() { return *device_; }
  const StepStats& stats() { return residency().stats(); }

  Handle data(int64_t size = 1, Category category = Category::kData) {
    return toy_upload(session_, size * kUnitWords, ++salt_, category);
  }
  Handle call(const std::vector<Handle>& inputs, int64_t size = 1, int64_t workspace = 0) {
    return calls(inputs, {size}, workspace).front();
  }
  std::vector<Handle> calls(const std::vector<Handle>& inputs,
                            const std::vector<int64_t>& sizes, int64_t workspace = 0) {
    std::vector<ToyOutput> outputs;
    outputs.reserve(sizes.size());
    for (const int64_t size : sizes) outputs.push_back({size * kUnitWords});
    return toy_call(session_, inputs, outputs, ++salt_, workspace * kUnitWords);
  }
  void update(const std::vector<Handle>& inputs) { toy_update(session_, inputs, ++salt_); }
  uint64_t hash(const Handle& handle) { return toy_hash(session_, handle); }

  // Evicts the storage whatever the policy would choose.
  bool evict(const Handle& handle) {
    handle->offload_pinned = true;
    const bool done = residency().transfers().release(*handle, Reason::kNoSpace);
    handle->offload_pinned = false;
    return done;
  }
  bool offload(const Handle& handle) {
    handle->evict_pinned = true;
    const bool done = residency().transfers().release(*handle, Reason::kNoSpace);
    handle->evict_pinned = false;
    return done;
  }

  Bytes used() { return session_.arena().offsets().used(); }
  // A picture of the arena: "aa.b" shows one letter per unit and block, a dot per unused unit.
  std::string picture() {
    const OffsetAllocator& offsets = session_.arena().offsets();
    std::string text(static_cast<size_t>(offsets.capacity().count() / kAlignment.count()), '.');
    char letter = 'a';
    for (const Block& block : offsets.blocks()) {
      for (int64_t at = block.offset.value(); at < block.end().value();
           at += kAlignment.count()) {
        text[static_cast<size_t>(at / kAlignment.count())] = letter;
      }
      ++letter;
    }
    return text;
  }
  int64_t count(EventKind kind) {
    int64_t n = 0;
    session_.events().for_each([&](const EventRecord& event) { n += event.kind == kind; });
    return n;
  }
  std::vector<EventRecord> events(EventKind kind) {
    std::vector<EventRecord> found;
    session_.events().for_each([&](const EventRecord& event) {
      if (event.kind == kind) found.push_back(event);
    });
    return found;
  }

 private:
  FaultyDevice* device_;
  Session session_;
  uint32_t salt_ = 0;
};

inline bool resident(const Handle& handle) { return handle->resident(); }
inline bool evicted(const Handle& handle) { return handle->residence() == Residence::kEvicted; }
inline bool offloaded(const Handle& handle) {
  return handle->residence() == Residence::kOffloaded;
}

}  // namespace tidemark::testing
