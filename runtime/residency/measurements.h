// Joins what the device has timed with what was issued, for the cost
// model to learn from.
#pragma once

#include <cstdint>
#include <deque>

#include "runtime/residency/context.h"

namespace tidemark {

class Measurements {
 public:
  // Work whose time is not known yet.
  struct Work {
    CostKey key = 0;
    Bytes copied{0};
    bool recomputed = false;
  };

  explicit Measurements(ResidencyContext& context) : context_(context) {}

  // It has been handed to the device under that tag, which comes after all before.
  void add(uint64_t tag, const Work& work);
  // Takes over what is done by now.
  void take_completions();
  // What has not been timed by now never will be, but for the latest so many.
  void stop(size_t but = 0);
  // The step is over: costs may change now.
  void end_step() { context_.costs.end_step(context_.options.learn_costs && learning_); }
  // A step that threw.
  void abort_step() { context_.costs.end_step(/*use=*/false); }
  // Off: what is measured is not learnt from, as something else keeps the processors busy.
  void set_learning(bool learning) { learning_ = learning; }

 private:
  ResidencyContext& context_;
  std::deque<Work> works_;  // tags are consecutive from first_
  uint64_t first_ = 1;
  bool learning_ = true;
};

}  // namespace tidemark
