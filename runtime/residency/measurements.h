// Matches the device's timings with the work issued, for the cost model to learn from.
#pragma once

#include <cstdint>
#include <deque>

#include "runtime/residency/context.h"

namespace tidemark {

class Measurements {
 public:
  // Work that has not been timed yet.
  struct Work {
    CostKey key = 0;
    Bytes copied{0};
    bool recomputed = false;
  };

  explicit Measurements(ResidencyContext& context) : context_(context) {}

  // Records work given to the device under `tag`, which is larger than all earlier tags.
  void add(uint64_t tag, const Work& work);
  // Takes over the timings of finished work.
  void take_completions();
  // Stops waiting for timings, except of the latest `but` pieces of work.
  void stop(size_t but = 0);
  // Ends a step: costs may change now.
  void end_step() { context_.costs.end_step(context_.options.learn_costs && learning_); }
  // Ends a step that threw.
  void abort_step() { context_.costs.end_step(/*use=*/false); }
  // Off: measurements are not learnt from, because other work keeps the processors busy.
  void set_learning(bool learning) { learning_ = learning; }

 private:
  ResidencyContext& context_;
  std::deque<Work> works_;  // tags are consecutive from first_
  uint64_t first_ = 1;
  bool learning_ = true;
};

}  // namespace tidemark
