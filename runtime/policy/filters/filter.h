// What a filter releases first: the storage with the smallest h(m, s), where m is its size and
// s the time since its last use on the issue clock.
//
// Every filter here falls with s at a given m, or does not depend on it: so within one size
// the stalest storage is always (one of) the best, and the index need only compare one per
// size.
//
// To add one: a function in a file of its own here; its declaration and a line in registry.cc.
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
// Throws UsageError that lists the names.
const Filter& find_filter(std::string_view name);

}  // namespace tidemark
