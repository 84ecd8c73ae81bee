#include "runtime/residency/measurements.h"

#include <utility>

namespace tidemark {

uint64_t Measurements::add(uint64_t tag, const Work& work) {
  constexpr size_t kKept = 1 << 16;
  if (tag % (kKept / 2) == 0) take_completions();
  works_.resize(tag - first_ + 1);
  works_.back() = work;
  stop(kKept);
  return is_timed(work) ? tag : 0;
}

bool Measurements::is_timed(const Work& work) {
  constexpr uint32_t kFirstRuns = 16;  // the very first also load code
  constexpr uint32_t kSampled = 16;    // one in so many
  if (work.copied > Bytes(0) || context_.options.time_all || !context_.device.timing_costs()) {
    return true;
  }
  const uint32_t run = context_.costs.count_run(work.key);
  const bool unknown = context_.options.learn_costs && !context_.costs.is_measured(work.key);
  // Neighbours have neighbouring keys, so samples spread over the step.
  return (!planned_ && (tight_ || is_tight())) || unknown || run <= kFirstRuns ||
         (run + work.key) % kSampled == 0;
}

bool Measurements::is_tight() const {
  const StepStats& step = context_.stats;
  return step.evictions + step.offloads + step.clean_drops + step.reloads + step.recomputes +
             step.compactions >
         0;
}

void Measurements::stop(size_t but) {
  while (works_.size() > but) {
    const Work& untimed = works_.front();
    if (untimed.recomputed) context_.stats.recompute_time += context_.costs.time(untimed.key);
    works_.pop_front();
    ++first_;
  }
}

void Measurements::take_completions() {
  for (const Completion& done : context_.device.take_completions()) {
    context_.log.complete(done.tag, done.start, done.end);
    if (done.tag < first_ || done.tag - first_ >= works_.size()) continue;
    Work& work = works_[done.tag - first_];
    const Nanos time = done.end - done.start;
    if (work.key) context_.costs.measured_op(work.key, time);
    if (work.copied > Bytes(0)) {
      context_.costs.measured_copy(done.stream, work.copied, done.start, done.end);
    }
    if (std::exchange(work.recomputed, false)) context_.stats.recompute_time += time;
  }
}

}  // namespace tidemark
