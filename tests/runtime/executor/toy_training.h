// A training of toy operators to record, plan and follow.
#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "runtime/cost/cost_table.h"
#include "runtime/executor/step_planner.h"
#include "runtime/session/session.h"
#include "tests/runtime/residency/scene.h"

namespace tidemark::testing {

inline PlanOptions quiet(std::vector<std::string>* said = nullptr) {
  PlanOptions options;
  options.background = false;
  options.max_slowdown = std::numeric_limits<double>::infinity();  // on any machine
  options.report = [said](std::string_view line) {
    if (said) said->emplace_back(line);
  };
  return options;
}

// The same price for each call whose outputs have at most 6,144 words in all, and for updates:
// what a search finds does then not depend on the machine.
inline CostTable toy_costs() {
  CostTable table;
  const auto add = [&](uint64_t signature, Nanos time) {
    table.operators[signature] = {"toy", time, true};
  };
  for (uint64_t words = 0; words <= 6144; words += kUnitWords) {
    add(toy_signature(words), Nanos(1000));
    add(toy_variant_signature(words), Nanos(2000));
  }
  add(7, Nanos(1000));  // an update
  return table;
}

// How many storages that are live as the step begins end it elsewhere. The next step by this
// schedule moves them back first.
inline int64_t count_ending_elsewhere(const Schedule& schedule) {
  const auto& blocks = schedule.blocks;
  int64_t count = 0;
  for (uint32_t b = 0; b < schedule.initial_blocks; ++b) {
    count += std::any_of(blocks.begin(), blocks.end(), [&](const Schedule::Block& last) {
      return last.storage == blocks[b].storage && last.end >= schedule.code.size() &&
             last.at != blocks[b].at;
    });
  }
  return count;
}

// Two layers, their gradients, and updates at the end, which a plan moves forward. Salts make
// each step compute other values.
class Training {
 public:
  explicit Training(const SceneOptions& options = {}) : scene_(options) {
    for (int i = 0; i < kLayers; ++i) weights_.push_back(scene_.data(4, Category::kParameter));
  }
  static constexpr int kLayers = 3;

  StepStats step(const std::function<void(int)>& between = [](int) {}) {
    return scene_.session().step([&] {
      Handle x = scene_.data(2);
      std::vector<Handle> saved;
      for (const Handle& weight : weights_) {
        saved.push_back(x);
        x = scene_.call({x, weight}, 2, 1);
      }
      between(0);
      std::vector<Handle> gradients(kLayers);
      for (int i = kLayers - 1; i >= 0; --i) {
        const auto k = static_cast<size_t>(i);
        gradients[k] = scene_.call({x, saved[k]}, 4);
        x = scene_.call({x, weights_[k]}, 2);
        saved.pop_back();
      }
      between(1);
      for (size_t k = 0; k < kLayers; ++k) {
        scene_.update({weights_[k], gradients[k]});
        gradients[k] = {};
      }
      read_.push_back(scene_.hash(x));
    });
  }
  std::vector<uint64_t> finish() {
    for (const Handle& weight : weights_) read_.push_back(scene_.hash(weight));
    return read_;
  }
  // Runs `steps` steps, and in step `odd` one more call, where step() calls between(place).
  std::vector<uint64_t> run_with_an_odd_step(int steps, int odd, int place) {
    for (int i = 0; i < steps; ++i) {
      Handle extra;
      step([&](int at) {
        if (i == odd && at == place) extra = scene_.call({scene_.data(1)});
      });
    }
    return finish();
  }
  Scene& scene() { return scene_; }
  const std::vector<Handle>& weights() const { return weights_; }
  Session& session() { return scene_.session(); }

 private:
  Scene scene_;
  std::vector<Handle> weights_;
  std::vector<uint64_t> read_;
};

}  // namespace tidemark::testing
