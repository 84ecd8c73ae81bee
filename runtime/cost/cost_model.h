// How long things take: what the issue clock, DELTA's c_r and c_s, and the simulator count
// with.
//
// An operator is priced by its key (operator and signature). Before it has been timed: roofline
// over the device's profile, max(flops / rate, bytes / bandwidth, floor). After: the smallest
// of the recent measured times, taken over at a step's end only, so that decisions within a
// step depend on the program alone. Transfers likewise: the profile's link, then the measured
// one.
//
// Pinning host memory is not counted (DeviceProfile::pin_bandwidth): it is paid once for a
// piece of host memory and never again, so a policy that counted it in c_s would evict in the
// first step, never pin, and go on evicting.
//
// Or prices are given (use()), and nothing is learnt.
//
// Threads: the issuing thread.
#pragma once

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

// What an operator does, stated by the operator for its shapes.
struct OpCost {
  double flops = 0;      // multiply and add count as two
  Bytes bytes_moved{0};  // read + written, each tensor once
  bool matrix = false;   // convolution or matrix product: runs at the matrix rate
  // Its inputs are bfloat16: at the profile's rate for those. (Where a chip has none, its
  // profile says what it takes instead: data/profiles.)
  bool bfloat16 = false;
};

using CostKey = uint32_t;  // from CostModel::key(); 0: none

class CostModel {
 public:
  explicit CostModel(const DeviceProfile& profile);

  Nanos modelled(const OpCost& cost) const;
  // A key for a signature, the same each time until forget(); the first call fixes its modelled
  // time. `name` is for people who read the table.
  CostKey key(uint64_t signature_hash, const OpCost& cost, std::string_view name = {});
  // Of a key from before forget(): the least that an operator takes.
  Nanos time(CostKey key) const {
    return is_current(key) ? entries_[key - first_key_ + 1].time : floor_of(key);
  }
  bool is_current(CostKey key) const { return key >= first_key_; }

  // Goes by these prices from now on; what is not in the table is priced by the profile.
  // REQUIRES: no key has been given out yet.
  void use(std::shared_ptr<const CostTable> table);
  // All prices, as they are now.
  CostTable table() const;
  // How many signatures are known. In a program of ever new shapes they grow without end:
  // forget() lets go of them all, and keys given out until then are no longer current.
  size_t size() const { return entries_.size() - 1; }
  void forget();

  // One way over the link, latency included, as measured if it has been, else as the profile
  // has it.
  Nanos offload_time(Bytes bytes) const;
  Nanos reload_time(Bytes bytes) const;
  // Within the device, where each byte is read and written.
  Nanos move_time(Bytes bytes) const { return modelled({0, 2 * bytes, false}); }
  // DELTA's c_s = m / b: there and back. b is the link as measured or, before that, 35 % of the
  // profile's (Section 4.1: "only 35% of the bandwidth is used").
  Nanos swap_time(Bytes bytes) const;

  // Collected during a step ... A copy's stream is kOffload or kReload; key 0, other streams
  // and times of 0 are ignored.
  void measured_op(CostKey key, Nanos time);
  void measured_copy(StreamId stream, Bytes bytes, Nanos time);
  // ... and taken over here, at its end. `use` false: measurements are counted and forgotten.
  void end_step(bool use);

 private:
  struct Entry {
    uint64_t signature = 0;
    Nanos time{0};
    Nanos measured{0};  // least of this step; 0: none
    bool was_measured = false;
    std::string name{};
  };
  struct Link {
    double bandwidth = 0;  // bytes per second
    bool measured = false;
    double bytes = 0;  // this step
    double seconds = 0;
  };
  Nanos transfer_time(Bytes bytes, const Link& link, double share) const;

  Nanos floor_of(CostKey key) const { return key == 0 ? Nanos(0) : profile_.kernel_floor; }

  DeviceProfile profile_;
  std::shared_ptr<const CostTable> given_;  // null: none
  std::vector<Entry> entries_;              // the first is nobody's
  CostKey first_key_ = 1;                   // of entries_[1]
  std::unordered_map<uint64_t, CostKey> keys_;
  Link offload_;
  Link reload_;
};

}  // namespace tidemark
