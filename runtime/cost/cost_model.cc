#include "runtime/cost/cost_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/core/errors.h"

namespace tidemark {
namespace {

Nanos from_seconds(double seconds) { return Nanos(std::llround(seconds * 1e9)); }

// A step updates a link's measured rate only if it moved this much, and a copy the fastest rate
// only if it did: shorter copies mostly measure the clock.
constexpr double kEnoughBytes = 1 << 20;

// DELTA, Section 4.1: "only 35% of the bandwidth is used".
constexpr double kUnmeasuredShare = 0.35;

}  // namespace

CostModel::CostModel(const DeviceProfile& profile) : profile_(profile), entries_(1) {
  const auto set = [](Link& link, double alone, double beside) {
    link.bandwidth = link.alone = alone;
    if (beside > 0) link.beside = std::min(1.0, beside / alone);
  };
  set(offload_, profile.offload_bandwidth, profile.duplex_offload_bandwidth);
  set(reload_, profile.reload_bandwidth, profile.duplex_reload_bandwidth);
}

Nanos CostModel::modelled(const OpCost& cost) const {
  double seconds = static_cast<double>(cost.bytes_moved.count()) /
                   (profile_.memory_bandwidth * profile_.memory_efficiency);
  // Other operators do few operations per element, so memory bandwidth bounds them.
  if (cost.matrix) {
    const double rate = cost.bfloat16 ? profile_.bfloat16_flops : profile_.float32_flops;
    seconds = std::max(seconds, cost.flops / (rate * profile_.compute_efficiency));
  }
  return std::max(from_seconds(seconds), profile_.kernel_floor);
}

CostKey CostModel::key(uint64_t signature_hash, const OpCost& cost, std::string_view name) {
  const auto next = first_key_ + static_cast<CostKey>(entries_.size()) - 1;
  const auto [found, is_new] = keys_.try_emplace(signature_hash, next);
  if (!is_new) return found->second;
  Entry entry{.signature = signature_hash, .time = modelled(cost), .name = std::string(name)};
  if (given_) {
    const auto known = given_->operators.find(signature_hash);
    if (known != given_->operators.end()) {
      entry.time = known->second.time;
      entry.was_measured = known->second.measured;
    }
  }
  entries_.push_back(std::move(entry));
  return found->second;
}

uint64_t CostModel::signature(CostKey key) const {
  return key != 0 && is_current(key) ? entries_[key - first_key_ + 1].signature : 0;
}

void CostModel::use(std::shared_ptr<const CostTable> table) {
  TIDEMARK_CHECK(size() == 0, "a cost table is set before the first cost is looked up");
  given_ = std::move(table);
  const auto set = [](Link& link, const std::optional<double>& bandwidth) {
    if (!bandwidth) return;
    link.bandwidth = link.alone = *bandwidth;
    link.beside = 1;  // an average, which has the slower copies in it
    link.measured = true;
  };
  set(offload_, given_->offload_bandwidth);
  set(reload_, given_->reload_bandwidth);
}

CostTable CostModel::table() const {
  CostTable table;
  if (offload_.measured) table.offload_bandwidth = offload_.bandwidth;
  if (reload_.measured) table.reload_bandwidth = reload_.bandwidth;
  for (size_t i = 1; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    if (entry.time <= Nanos(0)) continue;  // takes no time with or without a table
    table.operators.emplace(entry.signature,
                            CostTable::Operator{entry.name, entry.time, entry.was_measured});
  }
  return table;
}

void CostModel::forget() {
  first_key_ += static_cast<CostKey>(size());
  entries_.resize(1);
  keys_.clear();
}

Nanos CostModel::transfer_time(Bytes bytes, const Link& link, double share) const {
  return profile_.transfer_latency +
         from_seconds(static_cast<double>(bytes.count()) / (link.bandwidth * share));
}

Nanos CostModel::offload_time(Bytes bytes) const { return transfer_time(bytes, offload_, 1); }

Nanos CostModel::reload_time(Bytes bytes) const { return transfer_time(bytes, reload_, 1); }

Nanos CostModel::swap_time(Bytes bytes) const {
  return transfer_time(bytes, offload_, offload_.measured ? 1 : kUnmeasuredShare) +
         transfer_time(bytes, reload_, reload_.measured ? 1 : kUnmeasuredShare);
}

Nanos CostModel::unmeasured_swap_time(Bytes bytes) const {
  const Link out{.bandwidth = profile_.offload_bandwidth},
      in{.bandwidth = profile_.reload_bandwidth};
  return transfer_time(bytes, out, kUnmeasuredShare) +
         transfer_time(bytes, in, kUnmeasuredShare);
}

void CostModel::measured_op(CostKey key, Nanos time) {
  if (!is_current(key) || time <= Nanos(0)) return;
  Nanos& least = entries_.at(key - first_key_ + 1).measured;
  least = least == Nanos(0) ? time : std::min(least, time);
}

void CostModel::measured_copy(StreamId stream, Bytes bytes, Nanos start, Nanos end) {
  const Nanos time = end - start;
  if (stream == StreamId::kCompute || time <= Nanos(0)) return;
  Link& link = stream == StreamId::kOffload ? offload_ : reload_;
  // The latency is priced separately. At least half of the time counts as moving, in case the
  // profile overstates the latency.
  const Nanos moving = std::max(time - profile_.transfer_latency, Nanos(time.count() / 2));
  const auto count = static_cast<double>(bytes.count());
  link.bytes += count;
  link.seconds += to_seconds(moving);
  link.moving.push_back({end - moving, end});
  if (count >= kEnoughBytes) {
    link.fastest_now = std::max(link.fastest_now, count / to_seconds(moving));
  }
}

void CostModel::end_step(bool use) {
  for (Entry& entry : entries_) {
    if (use && entry.measured > Nanos(0)) {
      entry.time = entry.measured;
      entry.was_measured = true;
    }
    entry.measured = Nanos(0);
  }
  const double both = seconds_of_both(offload_.moving, reload_.moving);
  for (Link* link : {&offload_, &reload_}) {
    if (use && link->bytes >= kEnoughBytes && link->seconds > 0) {
      link->bandwidth = link->bytes / link->seconds;
      link->measured = true;
      link->fastest = std::max({link->fastest, link->fastest_now, link->bandwidth});
      // As if `beside` held whenever both were busy. A link may slow down only the copy that
      // began later, so the rate would be too high; no copy was faster than the fastest.
      const double slow = std::min(both, link->seconds) * (1 - link->beside);
      link->alone = std::min(link->fastest, link->bytes / (link->seconds - slow));
    }
    link->bytes = link->seconds = link->fastest_now = 0;
    link->moving.clear();
  }
}

// For how long both directions were busy.
double CostModel::seconds_of_both(const std::vector<Interval>& a,
                                  const std::vector<Interval>& b) {
  Nanos both{0};
  for (size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    const Nanos start = std::max(a[i].start, b[k].start), end = std::min(a[i].end, b[k].end);
    if (start < end) both += end - start;
    a[i].end < b[k].end ? ++i : ++k;
  }
  return to_seconds(both);
}

LinkRates CostModel::link_rates() const {
  return {.out = offload_.alone,
          .in = reload_.alone,
          .out_beside = offload_.alone * offload_.beside,
          .in_beside = reload_.alone * reload_.beside,
          .latency = profile_.transfer_latency};
}

}  // namespace tidemark
