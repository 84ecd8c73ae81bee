// Compares the map with std::map: the same entries in the same order, whatever is added,
// removed and moved.
#include "runtime/memory/address_map.h"

#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <random>

namespace tidemark {
namespace {

void expect_same(const AddressMap<int>& found, const std::map<Offset, int>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  auto next = expected.begin();
  for (const auto& [offset, value] : found) {
    ASSERT_EQ(offset, next->first);
    ASSERT_EQ(value, next->second);
    ++next;
  }
}

// `most`: the maximum number of entries; small, and large enough for chunks to come and go.
void run(uint32_t seed, size_t most) {
  std::mt19937 random(seed);
  AddressMap<int> map;
  std::map<Offset, int> model;
  bool grows = true;
  for (int step = 0; step < 4000; ++step) {
    grows = model.empty() || (grows && model.size() < most) || (!grows && random() % 200 == 0);
    const Offset at(static_cast<int64_t>(random() % (4 * most)) * 512);
    const auto near = model.lower_bound(at);
    const auto found = map.first_from(at);
    ASSERT_EQ(found == map.end(), near == model.end());
    if (near != model.end()) {
      ASSERT_EQ(found->offset, near->first);
      ASSERT_EQ(map.find(at) == map.end(), near->first != at);
    }
    const auto below = map.last_up_to(at);
    const auto after = model.upper_bound(at);
    ASSERT_EQ(below == map.end(), after == model.begin());
    if (after != model.begin()) {
      ASSERT_EQ(below->offset, std::prev(after)->first);
    }
    if (random() % 3 == 0) grows = !grows;
    if (grows && (near == model.end() || near->first != at)) {
      map.insert(at, step);
      model[at] = step;
    } else if (near != model.end() && random() % 4 == 0) {
      // Half the way to its neighbour.
      const auto next = std::next(near);
      const Offset to = next == model.end()
                            ? near->first + Bytes(256)
                            : near->first + Bytes((next->first - near->first).count() / 2);
      map.move(found, to);
      const int value = near->second;
      model.erase(near);
      model[to] = value;
    } else if (near != model.end()) {
      map.erase(found);
      model.erase(near);
    }
    if (step % 16 == 0) expect_same(map, model);
    if (!model.empty()) {
      ASSERT_EQ(map.front().offset, model.begin()->first);
      ASSERT_EQ(map.back().offset, model.rbegin()->first);
      auto last = map.end();
      ASSERT_EQ((--last)->offset, model.rbegin()->first);
    }
  }
}

TEST(AddressMap, IsAnOrderedMap) {
  for (uint32_t seed = 0; seed < 8; ++seed) {
    for (const size_t most : {4, 100, 1000}) run(seed, most);
  }
}

}  // namespace
}  // namespace tidemark
