// Buffers of made-up training steps, for layouts of any number of buffers: saved activations
// that nest like a stack, short-lived temporaries, gradients that wait for their bucket or for
// the update, in sizes of a few families. The seed decides the network's shape: widths, layers
// recomputed, micro-batches in flight (as in a pipeline, where stacks interleave), and how long
// gradients wait.
//
// Threads: functions without state.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/planner/layout/layout.h"
#include "runtime/planner/mix.h"

namespace tidemark::bench {

class TrainingBuffers {
 public:
  // `count` buffers, or a little more.
  static std::vector<planner::Buffer> make(uint64_t seed, size_t count) {
    return TrainingBuffers(seed, count).run();
  }

 private:
  // An operator: the tensor that it writes, and the scratch that it takes while it runs.
  struct Op {
    int64_t output, scratch, weight;
    bool saved;  // for backward
    int stays;   // operators until its last reader, if not saved
  };

  TrainingBuffers(uint64_t seed, size_t count) : random_(planner::mix(seed)), count_(count) {
    const int64_t width = (1 + pick(8)) * 256;
    const int64_t tokens = int64_t{512} << pick(3);
    const int64_t rows[] = {tokens, tokens / 2, tokens / 8, 3};
    const int64_t columns[] = {width, 4 * width, 3 * width, tokens, 64, 1};
    for (int kinds = 2 + static_cast<int>(pick(4)); kinds > 0; --kinds) {
      std::vector<Op> layer;
      for (int64_t ops = 6 + pick(20); ops > 0; --ops) {
        const int64_t row = rows[pick(4)], column = columns[pick(6)], copies = 1 + pick(2);
        const int64_t output = align(row * column * copies * 2);
        const bool has_weight = pick(3) == 0;
        layer.push_back({output, pick(4) == 0 ? align(output / (1 + pick(8)) + pick(4096)) : 0,
                         has_weight ? align(width * columns[pick(6)] * 4) : 0, pick(5) < 3,
                         1 + static_cast<int>(pick(pick(4) == 0 ? 40 : 4))});
      }
      kinds_.push_back(std::move(layer));
    }
    in_flight_ = 1 + static_cast<int>(pick(4));
    recomputed_ = static_cast<int>(pick(3));
    bucket_ = pick(2) == 0 ? 0 : 1 + static_cast<int>(pick(12));
  }

  int64_t pick(int64_t n) {
    random_ = planner::mix(random_);
    return static_cast<int64_t>(random_ % static_cast<uint64_t>(n));
  }
  static int64_t align(int64_t bytes) {
    return align_up(Bytes(std::max<int64_t>(bytes, 1))).count();
  }
  size_t add(int64_t size, int64_t stays = 1) {
    buffers_.push_back({now_, now_ + stays, Bytes(size)});
    return buffers_.size() - 1;
  }
  void end(size_t buffer) { buffers_[buffer].end = now_ + 1; }

  // The activations that a layer's backward pass needs, one per operator, or kNotKept.
  using Kept = std::vector<size_t>;
  static constexpr size_t kNotKept = SIZE_MAX;

  Kept forward(const std::vector<Op>& layer, bool keep) {
    Kept kept;
    for (const Op& op : layer) {
      if (op.scratch > 0) add(op.scratch);
      const size_t output = add(op.output, op.stays);
      kept.push_back(op.saved && keep ? output : kNotKept);
      ++now_;
    }
    return kept;
  }

  void backward(const std::vector<Op>& layer, Kept kept, std::vector<size_t>& gradients) {
    if (kept.empty()) kept = forward(layer, true);
    for (size_t k = layer.size(); k-- > 0;) {
      if (layer[k].scratch > 0) add(layer[k].scratch);
      add(layer[k].output, layer[k].stays);
      if (layer[k].weight > 0) gradients.push_back(add(layer[k].weight));
      if (kept[k] != kNotKept) end(kept[k]);
      ++now_;
    }
  }

  void reduce(std::vector<size_t>& gradients) {
    for (const size_t gradient : gradients) {
      add(buffers_[gradient].size.count(), 2);
      end(gradient);
      ++now_;
    }
    gradients.clear();
  }

  std::vector<planner::Buffer> run() {
    const uint64_t start = random_;
    const auto try_layers = [&](size_t layers) {
      random_ = start;
      buffers_.clear();
      now_ = 0;
      step(layers);
      return buffers_.size();
    };
    // The size of a step of a few layers tells about how many are needed.
    constexpr size_t kFew = 64;
    size_t layers = std::max<size_t>(1, count_ * kFew / try_layers(kFew));
    while (try_layers(layers) < count_) layers += 1 + layers / 64;
    return std::move(buffers_);
  }

  void step(size_t layers) {
    std::vector<size_t> kinds;  // runs of layers of one kind
    while (kinds.size() < layers) {
      const auto kind = static_cast<size_t>(pick(static_cast<int64_t>(kinds_.size())));
      for (int64_t k = 1 + pick(12); k > 0; --k) kinds.push_back(kind);
    }
    kinds.resize(layers);
    const auto is_kept = [&](size_t layer) {
      return static_cast<int>(layer % 3) >= recomputed_;
    };
    std::vector<std::vector<Kept>> stacks(in_flight_);
    std::vector<std::vector<size_t>> inputs(in_flight_);
    std::vector<size_t> gradients;
    // Micro-batch b starts a quarter of a pass after b - 1: forward and backward interleave.
    const size_t lag = layers / 4 + 1;
    for (size_t tick = 0; tick < 2 * layers + lag * (in_flight_ - 1); ++tick) {
      for (int b = 0; b < in_flight_; ++b) {
        if (tick < lag * b || tick >= lag * b + 2 * layers) continue;
        const size_t at = tick - lag * b;
        if (at < layers) {
          inputs[b].push_back(add(kinds_[kinds[at]][0].output));
          stacks[b].push_back(is_kept(at) ? forward(kinds_[kinds[at]], true) : Kept{});
          if (!is_kept(at)) forward(kinds_[kinds[at]], false);
          continue;
        }
        backward(kinds_[kinds[2 * layers - 1 - at]], std::move(stacks[b].back()), gradients);
        stacks[b].pop_back();
        end(inputs[b].back());
        inputs[b].pop_back();
        if (bucket_ > 0 && at % bucket_ == 0) reduce(gradients);
      }
    }
    reduce(gradients);
  }

  uint64_t random_;
  size_t count_;
  std::vector<std::vector<Op>> kinds_;
  int in_flight_ = 1;   // micro-batches
  int recomputed_ = 0;  // of three layers
  int bucket_ = 0;      // layers whose gradients are reduced together; 0: all
  int64_t now_ = 0;
  std::vector<planner::Buffer> buffers_;
};

}  // namespace tidemark::bench
