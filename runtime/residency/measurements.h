// Matches the device's timings with the work issued, for the cost model to learn from.
//
// Where timing costs time (CUDA's events), an operator is timed in its first runs, in steps in
// which a policy releases something or that follow such a step, and otherwise in every
// sixteenth run. While a policy is short of memory, all are: costs then decide what is
// released, and a copy may start at the event behind the last use rather than at a later one.
// Under a schedule costs decide nothing, and its copies are given to the device right after the
// last use.
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
  // Returns the tag for the device, which is 0 if the work is not to be timed.
  uint64_t add(uint64_t tag, const Work& work);
  void begin_step() { tight_ = is_tight(); }
  // Whether the operators to come follow a schedule.
  void set_planned(bool planned) { planned_ = planned; }
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
  bool is_timed(const Work& work);
  // Memory is short: something was released, moved or brought back in this step.
  bool is_tight() const;

  ResidencyContext& context_;
  std::deque<Work> works_;  // tags are consecutive from first_
  uint64_t first_ = 1;
  bool learning_ = true;
  bool tight_ = false;  // the step before was
  bool planned_ = false;
};

}  // namespace tidemark
