// Costs found in one run, for use in another: the same program with the same costs makes the
// same decisions on any device.
//
//   {"format": "tidemark-costs", "version": 1, "device": "cpu",
//    "offload_bandwidth": 9.1e9, "reload_bandwidth": 9.3e9,
//    "operators": [{"signature": "00f3...", "name": "conv2d (8, 56, 56, 64) ...", "ns": 81200,
//                   "measured": true}, ...]}
//
// Threads: any; a table is immutable once made.
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
    std::string name{};     // with shapes; for people
    Nanos time{0};          // above 0
    bool measured = false;  // false: modelled, which is equally valid here
    bool operator==(const Operator&) const = default;
  };
  std::string device{};  // where the costs were found; for people
  // Measured bytes per second; none: the profile's.
  std::optional<double> offload_bandwidth{};
  std::optional<double> reload_bandwidth{};
  std::map<uint64_t, Operator> operators{};  // by signature
  bool operator==(const CostTable&) const = default;
};

// Throws DataError, with `name` as the file.
CostTable parse_costs(const std::string& name, std::string_view json);
std::string to_json(const CostTable& table);

// Throw DataError; reading also if the input is longer than any table, such as an endless
// device.
CostTable read_costs(const std::string& path);
void write_costs(const CostTable& table, const std::string& path);

}  // namespace tidemark
