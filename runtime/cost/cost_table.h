// Prices that were found in one run, to go by in another: the same program with the same prices
// decides the same on any device.
//
//   {"format": "tidemark-costs", "version": 1, "device": "cpu",
//    "offload_bandwidth": 9.1e9, "reload_bandwidth": 9.3e9,
//    "operators": [{"signature": "00f3...", "name": "conv2d (8, 56, 56, 64) ...", "ns": 81200,
//                   "measured": true}, ...]}
//
// Threads: any; a table does not change once it is made.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/core/units.h"

namespace tidemark {

struct CostTable {
  struct Operator {
    std::string name{};     // and shapes; for people
    Nanos time{0};          // above 0
    bool measured = false;  // or modelled, which is no reason to distrust it here
    bool operator==(const Operator&) const = default;
  };
  std::string device{};  // where it was found; for people
  // Bytes per second, as measured; none: the profile's.
  std::optional<double> offload_bandwidth{};
  std::optional<double> reload_bandwidth{};
  std::map<uint64_t, Operator> operators{};  // by signature
  bool operator==(const CostTable&) const = default;
};

// Throws DataError with `name` as the file.
CostTable parse_costs(const std::string& name, std::string_view json);
std::string to_json(const CostTable& table);

// Throw DataError; reading also for what is longer than any table, such as a device without
// end.
CostTable read_costs(const std::string& path);
void write_costs(const CostTable& table, const std::string& path);

}  // namespace tidemark
