// Costs of operators and transfers, for the issue clock, DELTA's c_r and c_s, and the
// simulator.
//
// An operator's cost is looked up by key (operator and signature). Before it has been timed,
// the cost is a roofline over the device's profile: max(flops / rate, bytes / bandwidth,
// floor). Afterwards it is the smallest recent measured time. Measurements take effect only at
// a step's end, so that decisions within a step depend on the program alone. Transfers are
// treated the same way: first the profile's link, then the measured one.
//
// A copy beside one in the other direction may be slower; DeviceProfile says by how much. The
// rate of offload_time() and reload_time() is the average over all copies, LinkRates has both.
//
// Costs exclude pinning host memory (DeviceProfile::pin_bandwidth). Pinning is paid once per
// piece of host memory; a policy that included it in c_s would evict in the first step, never
// pin, and go on evicting.
//
// With given costs (use()), nothing is learnt.
//
// Threads: the issuing thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/core/units.h"
#include "runtime/cost/cost_table.h"
#include "runtime/device/device.h"

namespace tidemark {

// An operator's work for its shapes, stated by the operator.
struct OpCost {
  double flops = 0;      // multiply and add count as two
  Bytes bytes_moved{0};  // read + written, each tensor once
  bool matrix = false;   // convolution or matrix product: runs at the matrix rate
  // Inputs are bfloat16, and run at the profile's rate for it. (A chip without bfloat16 has a
  // substitute rate in its profile: data/profiles.)
  bool bfloat16 = false;
};

// Bytes per second each way, alone and beside a copy the other way. Each copy takes `latency`
// more.
struct LinkRates {
  double out = 0, in = 0;
  double out_beside = 0, in_beside = 0;
  Nanos latency{0};
};

using CostKey = uint32_t;  // from CostModel::key(); 0: none

class CostModel {
 public:
  explicit CostModel(const DeviceProfile& profile);

  Nanos modelled(const OpCost& cost) const;
  // The key of a signature, constant until forget(); the first call fixes its modelled cost.
  // `name` is for people who read the table.
  CostKey key(uint64_t signature_hash, const OpCost& cost, std::string_view name = {});
  // An operator's cost. For a key from before forget(): the minimum cost of an operator.
  Nanos time(CostKey key) const {
    return is_current(key) ? entries_[key - first_key_ + 1].time : floor_of(key);
  }
  bool is_current(CostKey key) const { return key >= first_key_; }
  // What the key was made from. Keys count up in order of first use; signatures are the same in
  // every process. 0 for a key from before forget().
  uint64_t signature(CostKey key) const;
  // False for a key from before forget().
  bool is_measured(CostKey key) const {
    return is_current(key) && entries_[key - first_key_ + 1].was_measured;
  }
  // Counts a run of the operator. Returns its runs so far; 0 for a key from before forget().
  uint32_t count_run(CostKey key) {
    return is_current(key) ? ++entries_[key - first_key_ + 1].runs : 0;
  }

  // Uses these costs from now on; operators not in the table are priced by the profile.
  // REQUIRES: no key has been given out yet.
  void use(std::shared_ptr<const CostTable> table);
  // All current costs.
  CostTable table() const;
  // The number of known signatures. It grows without bound in a program with ever new shapes:
  // forget() removes all of them and invalidates keys given out before.
  size_t size() const { return entries_.size() - 1; }
  void forget();

  // One way over the link, including latency: measured if possible, else from the profile.
  Nanos offload_time(Bytes bytes) const;
  Nanos reload_time(Bytes bytes) const;
  // Bytes per second of the fastest copy measured so far, one way; not below the rate of
  // offload_time() and reload_time(). For bounds: a link may carry less while its other
  // direction is busy.
  double fastest_offload() const { return std::max(offload_.fastest, offload_.bandwidth); }
  double fastest_reload() const { return std::max(reload_.fastest, reload_.bandwidth); }
  // For planners: what a copy takes alone on the link, and beside one in the other direction.
  LinkRates link_rates() const;
  // A move within the device, which reads and writes each byte.
  Nanos move_time(Bytes bytes) const { return modelled({0, 2 * bytes, false}); }
  // DELTA's c_s = m / b, both ways. b is the measured bandwidth or, before measurements, 35 %
  // of the profile's (Section 4.1: "only 35% of the bandwidth is used").
  Nanos swap_time(Bytes bytes) const;
  // The same, always at 35 % of the profile's bandwidth.
  Nanos unmeasured_swap_time(Bytes bytes) const;

  // Collects measurements during a step. A copy's stream is kOffload or kReload, and copies of
  // one stream come in the order in which they ran; key 0, other streams and times of 0 are
  // ignored.
  void measured_op(CostKey key, Nanos time);
  void measured_copy(StreamId stream, Bytes bytes, Nanos start, Nanos end);
  // Ends a step: applies its measurements, or with `use` false discards them after counting.
  void end_step(bool use);

 private:
  struct Entry {
    uint64_t signature = 0;
    Nanos time{0};
    Nanos measured{0};  // minimum in this step; 0: none
    bool was_measured = false;
    uint32_t runs = 0;
    std::string name{};
  };
  struct Interval {
    Nanos start, end;
  };
  struct Link {
    double bandwidth = 0;  // bytes per second, the average over copies
    double alone = 0;      // the same while the other direction is idle
    double beside = 1;     // the share of `alone` that is left while it is busy
    bool measured = false;
    double fastest = 0;  // of copies of at least 1 MiB, in steps that were used
    // In this step:
    double bytes = 0;
    double seconds = 0;
    double fastest_now = 0;
    std::vector<Interval> moving{};
  };
  static double seconds_of_both(const std::vector<Interval>& a, const std::vector<Interval>& b);
  Nanos transfer_time(Bytes bytes, const Link& link, double share) const;

  Nanos floor_of(CostKey key) const { return key == 0 ? Nanos(0) : profile_.kernel_floor; }

  DeviceProfile profile_;
  std::shared_ptr<const CostTable> given_;  // null: none
  std::vector<Entry> entries_;              // the first entry is unused
  CostKey first_key_ = 1;                   // key of entries_[1]
  std::unordered_map<uint64_t, CostKey> keys_;
  Link offload_;
  Link reload_;
};

}  // namespace tidemark
