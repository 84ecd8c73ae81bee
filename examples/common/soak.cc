#include "examples/common/soak.h"

#include <algorithm>
#include <chrono>
#include <random>

#include "runtime/core/errors.h"
#include "runtime/core/process_memory.h"
#include "runtime/residency/residency.h"

namespace tidemark {
namespace {

// At most this many samples are kept. Then every other one is dropped, and sampling is half as
// frequent.
constexpr size_t kSamples = 4096;

class Samples {
 public:
  void add(const SoakSample& sample) {
    if (count_++ % stride_ != 0) return;
    samples_.push_back(sample);
    if (samples_.size() < kSamples) return;
    for (size_t i = 0; i < kSamples / 2; ++i) samples_[i] = samples_[2 * i];
    samples_.resize(kSamples / 2);
    stride_ *= 2;
  }
  // The mean over a tenth of the samples: the first tenth at 0, the last at 1.
  SoakSample mean_of_tenth(double at) const {
    const size_t n = std::max<size_t>(1, samples_.size() / 10);
    SoakSample mean{.spread = 0};
    if (samples_.empty()) return mean;
    const auto begin = static_cast<size_t>(at * static_cast<double>(samples_.size() - n));
    for (size_t i = begin; i < begin + n; ++i) {
      const SoakSample& s = samples_[i];
      mean.scattered += s.scattered / static_cast<double>(n);
      mean.spread += s.spread / static_cast<double>(n);
      mean.host_used += s.host_used / static_cast<double>(n);
      mean.moves += s.moves / static_cast<double>(n);
      mean.kept += s.kept / static_cast<double>(n);
      mean.process += s.process / static_cast<double>(n);
      mean.own += s.own / static_cast<double>(n);
    }
    return mean;
  }

 private:
  std::vector<SoakSample> samples_;
  size_t count_ = 0;
  size_t stride_ = 1;
};

double as_double(Bytes bytes) { return static_cast<double>(bytes.count()); }

SoakSample take_sample(Session& session, const ShapedTraining& training,
                       const StepStats& stats) {
  SoakSample sample;
  const OffsetAllocator& offsets = session.arena().offsets();
  if (offsets.unused() > Bytes(0)) {
    sample.scattered = 1 - as_double(offsets.largest_hole()) / as_double(offsets.unused());
  }
  if (stats.peak_live > Bytes(0)) {
    sample.spread = as_double(stats.peak_reserved) / as_double(stats.peak_live);
  }
  Bytes host_peak{0};
  if (session.host()) {
    sample.host_used = as_double(session.host()->used());
    host_peak = session.host()->peak();
  }
  sample.moves = static_cast<double>(stats.compactions);
  sample.kept = static_cast<double>(session.residency().kept().storages);
  if (const std::optional<Bytes> process = resident_memory()) {
    sample.process = as_double(*process);
    Bytes others = training.data_bytes();
    if (session.device().has_data()) others += session.peak_reserved() + host_peak;
    sample.own = std::max(0.0, as_double(*process - others));
  }
  return sample;
}

}  // namespace

// Where blocks lie between steps is chance and decides nothing; how much they have to be moved
// does. Process memory is noisy: kernels for new shapes are made and kept up to a limit, and
// allocators' pools fill first. Only the second half therefore counts.
bool SoakReport::flat() const {
  constexpr double kKernels = 64 << 20;
  if (last.kept > 1.05 * first.kept + 8) return false;
  return !long_enough() ||
         (last.moves <= 1.5 * first.moves + 2 && last.own <= 1.05 * middle.own + kKernels);
}

SoakReport soak(Session& session, ShapedTraining& training, const SoakOptions& options,
                const std::function<bool()>& stop) {
  SoakReport report;
  std::mt19937_64 random(options.seed);
  const auto pick = [&](int64_t count) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(count));
  };
  Samples samples;
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  while ((!options.steps || report.steps < *options.steps) &&
         (!options.minutes || seconds() < 60 * *options.minutes)) {
    if (stop()) {
      report.interrupted = true;
      break;
    }
    const auto size = static_cast<size_t>(pick(static_cast<int64_t>(options.sizes.size())));
    const StepShape shape{1 + pick(options.batch), options.sizes[size]};
    ++report.steps;
    try {
      const StepStats& stats = session.step([&] { training.step(shape); });
      samples.add(take_sample(session, training, stats));
    } catch (const OutOfMemory&) {
      ++report.out_of_memory;
    }
  }
  report.seconds = seconds();
  report.peak = session.peak_reserved();
  if (session.host()) report.host_peak = session.host()->peak();
  report.first = samples.mean_of_tenth(0);
  report.middle = samples.mean_of_tenth(0.5);
  report.last = samples.mean_of_tenth(1);
  return report;
}

}  // namespace tidemark
