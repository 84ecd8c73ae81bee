// A filter scores a storage by h(m, s), where m is its size and s the time since its last use
// on the issue clock. The storage with the smallest score is released first.
//
// At a given m, the score of each filter here falls with s or does not depend on s. Within one
// size the stalest storage is therefore always among the best, and the index compares only one
// storage per size.
//
// To add a filter: define its function in a file of its own here; declare and list it in
// registry.cc. Only filters that policies use by name are declared in this header.
#pragma once

#include <span>
#include <string_view>

namespace tidemark {

using FilterFn = double (*)(double bytes, double staleness_ns);

struct Filter {
  std::string_view name;
  FilterFn score;
  std::string_view formula;  // for --help
};

double base_score(double bytes, double staleness_ns);    // DELTA eq. (1): 1 / (m s)
double lru_score(double bytes, double staleness_ns);     // DELTA eq. (2): 1 / s
double greedy_score(double bytes, double staleness_ns);  // DELTA eq. (3): 1 / m

std::span<const Filter> filters();
// Throws UsageError, which lists the names.
const Filter& find_filter(std::string_view name);

}  // namespace tidemark
