#include "runtime/residency/measurements.h"

#include <utility>

namespace tidemark {

void Measurements::add(uint64_t tag, const Work& work) {
  constexpr size_t kKept = 1 << 16;
  if (tag % (kKept / 2) == 0) take_completions();
  works_.resize(tag - first_ + 1);
  works_.back() = work;
  stop(kKept);
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
