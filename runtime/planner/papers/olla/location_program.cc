#include "runtime/planner/papers/olla/location_program.h"

#include <algorithm>
#include <numeric>

#include "runtime/planner/layout/heuristics.h"

namespace tidemark::planner::olla {
namespace {

bool meet(const Buffer& x, const Buffer& y) { return x.begin < y.end && y.begin < x.end; }

double to_double(Bytes bytes) { return static_cast<double>(bytes.count()); }

// How many of `placed`, from the first on, lie on each other from 0 upwards for all of a
// buffer's life, and where they end.
struct Ground {
  size_t count = 0;
  Offset top;
};

Ground ground_of(const std::vector<Buffer>& buffers,
                 const std::vector<std::pair<int, Offset>>& placed, const Buffer& buffer) {
  Ground ground;
  for (const auto& [i, offset] : placed) {
    const Buffer& below = buffers[i];
    if (offset != ground.top || below.begin > buffer.begin || below.end < buffer.end) break;
    ground.top = offset + below.size;
    ++ground.count;
  }
  return ground;
}

// Pairs of buffers, i < j, that rows (6) and (7) keep apart, in order. O(n log n + n * placed +
// pairs).
std::vector<std::pair<int, int>> find_pairs(const std::vector<Buffer>& buffers,
                                            const LocationOptions& options) {
  std::vector<bool> fixed(buffers.size(), false);
  for (const auto& [i, offset] : options.placed) fixed[i] = true;
  std::vector<int> free;
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (!fixed[i] && !is_empty(buffers[i])) free.push_back(static_cast<int>(i));
  }
  std::vector<std::pair<int, int>> pairs;
  for (const int i : free) {
    for (size_t k = ground_of(buffers, options.placed, buffers[i]).count;
         k < options.placed.size(); ++k) {
      const int other = options.placed[k].first;
      if (!options.precedence || meet(buffers[i], buffers[other])) {
        pairs.push_back(std::minmax({i, other}));
      }
    }
  }
  std::sort(free.begin(), free.end(), [&](int a, int b) {
    return std::pair(buffers[a].begin, a) < std::pair(buffers[b].begin, b);
  });
  std::vector<int> live;  // begun earlier, not over
  for (const int i : free) {
    if (options.precedence) {
      std::erase_if(live, [&](int j) { return buffers[j].end <= buffers[i].begin; });
    }
    for (const int j : live) pairs.push_back(std::minmax({i, j}));
    live.push_back(i);
  }
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

}  // namespace

std::string pair_name(const char* what, size_t i, size_t j) {
  return what + std::string("[") + std::to_string(i) + "," + std::to_string(j) + "]";
}

std::vector<size_t> by_address(const std::vector<int>& address,
                               const std::vector<double>& values) {
  std::vector<size_t> order;
  for (size_t i = 0; i < address.size(); ++i) {
    if (address[i] >= 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t i, size_t j) { return values[address[i]] < values[address[j]]; });
  return order;
}

int64_t LocationProgram::term_count(const std::vector<Buffer>& buffers,
                                    const LocationOptions& options) {
  std::vector<bool> fixed(buffers.size(), false);
  for (const auto& [i, offset] : options.placed) fixed[i] = true;
  std::vector<Buffer> free;
  int64_t pairs = 0;
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (fixed[i] || is_empty(buffers[i])) continue;
    free.push_back(buffers[i]);
    for (size_t k = ground_of(buffers, options.placed, buffers[i]).count;
         k < options.placed.size(); ++k) {
      const Buffer& other = buffers[options.placed[k].first];
      if (!options.precedence || meet(buffers[i], other)) ++pairs;
    }
  }
  const auto count = static_cast<int64_t>(free.size());
  pairs += options.precedence ? count_meetings(free, INT64_MAX) : count * (count - 1) / 2;
  return 8 * pairs;
}

LocationProgram::LocationProgram(const std::vector<Buffer>& buffers, LocationOptions options)
    : buffers_(buffers), options_(std::move(options)), address_(buffers.size(), -1) {
  Bytes sum{0};
  for (const Buffer& b : buffers) sum += is_empty(b) ? Bytes(0) : b.size;
  const double unit = options_.unit;
  const Bytes most = options_.limit > Bytes(0) ? std::min(options_.limit, sum) : sum;
  const double big = to_double(most) / unit;
  std::vector<bool> fixed(buffers.size(), false);
  for (const auto& [i, offset] : options_.placed) fixed[i] = true;

  peak_ = program_.add_variable(
      {.name = "peak", .lower = to_double(options_.bound) / unit, .upper = big, .cost = 1});
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (is_empty(buffers[i])) continue;
    const double size = to_double(buffers[i].size) / unit;
    address_[i] = program_.add_variable({.name = pair_name("A", i, i), .upper = big - size});
    if (!fixed[i]) {
      const Ground ground = ground_of(buffers, options_.placed, buffers[i]);
      program_.variables[address_[i]].lower = static_cast<double>(ground.top.value()) / unit;
    }
    program_.add_row({.name = pair_name("(8)", i, i),
                      .upper = -size,
                      .terms = {{address_[i], 1}, {peak_, -1}}});
  }
  for (size_t i = 0; i < options_.ceilings.size(); ++i) {
    if (address_[i] < 0 || options_.ceilings[i] >= most) continue;
    program_.variables[address_[i]].upper =
        to_double(options_.ceilings[i] - buffers[i].size) / unit;
  }
  for (const auto& [i, offset] : options_.placed) {
    Variable& address = program_.variables[address_[i]];
    address.lower = address.upper = static_cast<double>(offset.value()) / unit;
  }
  for (const auto& [i, j] : find_pairs(buffers, options_)) {
    const int a = program_.add_binary(pair_name("a", i, j));
    const int b = program_.add_binary(pair_name("b", i, j));
    pairs_.push_back({i, j, a, b});
    program_.add_row({.name = pair_name("(6)", i, j),
                      .lower = meet(buffers[i], buffers[j]) ? 1.0 : 0.0,
                      .upper = 1,
                      .terms = {{a, 1}, {b, 1}}});
    program_.add_row({.name = pair_name("(7a)", i, j),
                      .upper = big - to_double(buffers[i].size) / unit,
                      .terms = {{address_[i], 1}, {address_[j], -1}, {a, big}}});
    program_.add_row({.name = pair_name("(7b)", i, j),
                      .lower = to_double(buffers[j].size) / unit - big,
                      .terms = {{address_[i], 1}, {address_[j], -1}, {b, -big}}});
  }
}

Offsets LocationProgram::offsets(const std::vector<double>& values) const {
  const std::vector<size_t> order = by_address(address_, values);
  Offsets result(buffers_.size());
  for (size_t k = 0; k < order.size(); ++k) {
    for (size_t below = 0; below < k; ++below) {
      if (!meet(buffers_[order[k]], buffers_[order[below]])) continue;
      result[order[k]] =
          std::max(result[order[k]], result[order[below]] + buffers_[order[below]].size);
    }
  }
  return result;
}

std::vector<double> LocationProgram::solution(const Offsets& offsets) const {
  std::vector<double> values(program_.variables.size(), 0);
  values[peak_] = to_double(height(buffers_, offsets)) / options_.unit;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    if (address_[i] >= 0) {
      values[address_[i]] = static_cast<double>(offsets[i].value()) / options_.unit;
    }
  }
  for (const Pair& pair : pairs_) {
    if (!meet(buffers_[pair.i], buffers_[pair.j])) continue;
    values[offsets[pair.i] < offsets[pair.j] ? pair.a : pair.b] = 1;
  }
  return values;
}

Offsets fit_around(const std::vector<Buffer>& buffers,
                   const std::vector<std::pair<int, Offset>>& placed) {
  Offsets offsets(buffers.size());
  std::vector<size_t> there, order;
  std::vector<bool> fixed(buffers.size(), false);
  for (const auto& [i, offset] : placed) {
    offsets[i] = offset;
    fixed[i] = true;
    there.push_back(static_cast<size_t>(i));
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (!fixed[i] && !is_empty(buffers[i])) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t i, size_t j) { return buffers[i].size > buffers[j].size; });
  std::vector<std::pair<Offset, Offset>> taken;
  for (const size_t i : order) {
    taken.clear();
    for (const size_t other : there) {
      if (meet(buffers[i], buffers[other])) {
        taken.emplace_back(offsets[other], offsets[other] + buffers[other].size);
      }
    }
    std::sort(taken.begin(), taken.end());
    for (const auto& [begin, end] : taken) {
      if (offsets[i] + buffers[i].size <= begin) break;
      offsets[i] = std::max(offsets[i], end);
    }
    there.push_back(i);
  }
  return offsets;
}

}  // namespace tidemark::planner::olla
