#include "runtime/planner/papers/solver/mps.h"

#include <array>
#include <charconv>
#include <utility>

namespace tidemark::planner {

std::string to_text(double value) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  return {digits.data(), end};
}

std::string to_mps(const Program& program) {
  std::string rows = "ROWS\n N COST\n", columns = "COLUMNS\n", rhs = "RHS\n",
              ranges = "RANGES\n", bounds = "BOUNDS\n";
  const auto entry = [](std::string& section, const char* set, const std::string& name,
                        double value) { section += set + name + " " + to_text(value) + "\n"; };
  std::vector<std::vector<std::pair<size_t, double>>> by_variable(program.variables.size());
  for (size_t i = 0; i < program.rows.size(); ++i) {
    const Row& row = program.rows[i];
    const std::string name = "R" + std::to_string(i);
    const bool below = row.upper<kInfinity, above = row.lower> - kInfinity;
    const bool equal = below && above && row.lower == row.upper;
    rows += std::string(equal ? " E " : below ? " L " : above ? " G " : " N ") + name + "\n";
    if (below || above) entry(rhs, " RHS ", name, below ? row.upper : row.lower);
    if (below && above && !equal) entry(ranges, " RNG ", name, row.upper - row.lower);
    for (const Term& term : row.terms) {
      by_variable[term.variable].emplace_back(i, term.factor);
    }
  }
  bool in_integers = false;
  int markers = 0;
  const auto mark = [&](bool integer) {
    if (integer == in_integers) return;
    in_integers = integer;
    columns += " M" + std::to_string(markers++) + " 'MARKER' " +
               (integer ? "'INTORG'\n" : "'INTEND'\n");
  };
  for (size_t i = 0; i < program.variables.size(); ++i) {
    const Variable& v = program.variables[i];
    const std::string name = "C" + std::to_string(i);
    mark(v.integer);
    // A variable that occurs nowhere still has to be listed.
    if (v.cost != 0 || by_variable[i].empty()) entry(columns, " ", name + " COST", v.cost);
    for (const auto& [row, factor] : by_variable[i]) {
      entry(columns, " ", name + " R" + std::to_string(row), factor);
    }
    // All bounds are spelt out: readers differ on an integer's default bounds.
    if (v.lower == v.upper) {
      entry(bounds, " FX BND ", name, v.lower);
      continue;
    }
    if (v.lower > -kInfinity) {
      entry(bounds, " LO BND ", name, v.lower);
    } else {
      bounds += " MI BND " + name + "\n";
    }
    if (v.upper < kInfinity) {
      entry(bounds, " UP BND ", name, v.upper);
    } else {
      bounds += " PL BND " + name + "\n";
    }
  }
  mark(false);
  return "NAME program FREE\n" + rows + columns + rhs + ranges + bounds + "ENDATA\n";
}

}  // namespace tidemark::planner
