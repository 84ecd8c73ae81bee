#include "runtime/session/algorithms.h"

#include <spdlog/fmt/fmt.h>
#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/core/errors.h"
#include "runtime/core/located_json.h"

namespace tidemark {
namespace {

using Json = nlohmann::ordered_json;

// Limits on working sets: the largest, then each time half of what is above the least.
constexpr int kLimits = 4;

Bytes working_set(const AlgorithmOffer& offer, const Algorithm& algorithm) {
  return offer.operands + algorithm.memory;
}

const Algorithm& leanest(const AlgorithmOffer& offer) {
  return *std::min_element(offer.algorithms.begin(), offer.algorithms.end(),
                           [](const Algorithm& a, const Algorithm& b) {
                             return a.memory != b.memory ? a.memory < b.memory
                                                         : a.time < b.time;
                           });
}

// The quickest algorithm within the limit; else the leanest.
const Algorithm& quickest_within(const AlgorithmOffer& offer, Bytes limit) {
  const Algorithm* best = nullptr;
  for (const Algorithm& each : offer.algorithms) {
    const bool fits = working_set(offer, each) <= limit;
    if (fits && (!best || each.time < best->time)) best = &each;
  }
  return best ? *best : leanest(offer);
}

// `choose`: an offer's algorithm.
template <class Choose>
AlgorithmTable make_table(const AlgorithmOffers& offers, Choose choose) {
  AlgorithmTable table;
  for (const auto& [signature, offer] : offers) {
    const Algorithm& chosen = choose(offer);
    if (!chosen.name.empty()) table.emplace(signature, chosen.name);
  }
  return table;
}

}  // namespace

std::string to_json(const AlgorithmTable& table) {
  Json json = Json::object();
  for (const auto& [signature, name] : table) json[fmt::format("{:016x}", signature)] = name;
  return json.dump();
}

AlgorithmTable parse_algorithms(const std::string& name, std::string_view text) {
  const auto fail = [&](const std::string& what) -> void { throw DataError(name, what); };
  const Json json = parse_located<Json>(name, text);
  if (!json.is_object()) fail("not an object");
  AlgorithmTable table;
  for (const auto& item : json.items()) {
    const std::string& digits = item.key();
    uint64_t signature = 0;
    const char* end = digits.data() + digits.size();
    const auto [rest, error] = std::from_chars(digits.data(), end, signature, 16);
    if (digits.size() != 16 || error != std::errc() || rest != end) {
      fail("\"" + digits + "\" is not a signature of 16 hexadecimal digits");
    }
    if (!item.value().is_string() || item.value().get<std::string>().empty()) {
      fail("the algorithm of " + digits + " is not a name");
    }
    table.emplace(signature, item.value().get<std::string>());
  }
  return table;
}

AlgorithmTable leanest_table(const AlgorithmOffers& offers) {
  return make_table(offers, leanest);
}

std::vector<AlgorithmTable> candidate_tables(const AlgorithmOffers& offers) {
  Bytes least{0}, most{0};
  for (const auto& [signature, offer] : offers) {
    least = std::max(least, working_set(offer, leanest(offer)));
    for (const Algorithm& each : offer.algorithms) {
      most = std::max(most, working_set(offer, each));
    }
  }
  std::vector<AlgorithmTable> tables{{}};
  const auto add = [&](AlgorithmTable table) {
    const bool is_new = std::find(tables.begin(), tables.end(), table) == tables.end();
    if (is_new) tables.push_back(std::move(table));
  };
  const auto add_within = [&](Bytes limit) {
    add(make_table(offers,
                   [&](const AlgorithmOffer& offer) { return quickest_within(offer, limit); }));
  };
  Bytes above = most - least;
  for (int i = 0; i <= kLimits; ++i) {
    add_within(least + above);
    above = i + 1 < kLimits ? Bytes(above.count() / 2) : Bytes(0);
  }
  add(leanest_table(offers));
  return tables;
}

}  // namespace tidemark
