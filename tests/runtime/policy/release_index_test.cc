// Compares the index with a scan of everything.
#include "runtime/policy/release_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "runtime/core/errors.h"
#include "runtime/policy/storage_queue.h"
#include "tests/support/usage_error.h"

namespace tidemark {
namespace {

IntrusivePtr<Storage> make(uint32_t id, int64_t units) {
  return make_intrusive<Storage>(nullptr, id, id, kAlignment * units, Category::kActivation,
                                 "test");
}

Storage* scan(const std::vector<IntrusivePtr<Storage>>& storages, const ReleaseIndex& index,
              FilterFn score, Nanos now, const std::set<uint32_t>& barred) {
  Storage* best = nullptr;
  double best_score = 0;
  for (const auto& storage : storages) {
    if (!index.contains(*storage) || barred.count(storage->id())) continue;
    const double value = score(static_cast<double>(storage->size().count()),
                               static_cast<double>((now - storage->last_access).count()));
    const auto better = [&] {
      if (!best || value != best_score) return !best || value < best_score;
      if (best->size() == storage->size() && best->last_access != storage->last_access) {
        return storage->last_access < best->last_access;
      }
      return storage->id() < best->id();
    };
    if (better()) {
      best = storage.get();
      best_score = value;
    }
  }
  return best;
}

class AnyFilter : public ::testing::TestWithParam<Filter> {};

TEST_P(AnyFilter, FindsWhatAScanFinds) {
  const FilterFn score = GetParam().score;
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    const auto pick = [&](uint32_t n) { return random() % n; };
    ReleaseIndex index;
    std::vector<IntrusivePtr<Storage>> storages;
    for (uint32_t id = 1; id <= 40; ++id) storages.push_back(make(id, 1 + pick(6)));
    std::set<uint32_t> barred;
    size_t inside = 0;
    Nanos now(0);
    for (int i = 0; i < 2000; ++i) {
      Storage& storage = *storages[pick(40)];
      const bool was_inside = index.contains(storage);
      switch (pick(6)) {
        case 0:
        case 1:
          // Also long after its last use, like a prefetched storage.
          index.add(storage);
          inside += !was_inside;
          break;
        case 2:
          index.remove(storage);
          inside -= was_inside;
          break;
        case 3:
          now += Nanos(pick(3));  // several storages are used at one time
          storage.last_access = now;
          index.touch(storage);
          break;
        case 4:
          if (!barred.insert(storage.id()).second) barred.erase(storage.id());
          break;
        default: now += Nanos(pick(2));
      }
      ASSERT_EQ(index.size(), inside);
      const Storage* best =
          index.best(score, now, [&](const Storage& s) { return barred.count(s.id()) == 0; });
      ASSERT_EQ(best, scan(storages, index, score, now, barred))
          << "seed " << seed << ", " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, AnyFilter,
                         ::testing::ValuesIn(filters().begin(), filters().end()),
                         [](const auto& tested) { return std::string(tested.param.name); });

// size, last use:   a 8, 11   b 1, 6   c 2, 7   now: 12
//   base 1/(m s):   a 1/8     b 1/6    c 1/10
//   lru 1/s:        a 1       b 1/6    c 1/5
//   greedy 1/m:     a 1/8     b 1      c 1/2
TEST(Heuristics, OrderALiteralSet) {
  const auto order = [](std::string_view name) {
    ReleaseIndex index;
    const auto a = make(1, 8), b = make(2, 1), c = make(3, 2);
    a->last_access = Nanos(11);
    b->last_access = Nanos(6);
    c->last_access = Nanos(7);
    for (const auto& storage : {a, b, c}) index.add(*storage);
    std::string text;
    while (Storage* next = index.best(find_filter(name).score, Nanos(12),
                                      [](const Storage&) { return true; })) {
      text += static_cast<char>('a' + next->id() - 1);
      index.remove(*next);
    }
    return text;
  };
  EXPECT_EQ(order("base"), "cab");
  EXPECT_EQ(order("lru"), "bca");
  EXPECT_EQ(order("greedy"), "acb");
}

TEST(Heuristics, AnUnknownOneIsRefusedWithTheNames) {
  std::string names;
  for (const Filter& filter : filters()) {
    names += (names.empty() ? "" : ", ") + std::string(filter.name);
  }
  EXPECT_EQ(testing::usage_error([] { find_filter("dtr"); }),
            "unknown filter 'dtr'; available: " + names);
}

TEST(ReleaseIndex, AddingAndRemovingTwiceIsOnce) {
  ReleaseIndex index;
  const auto a = make(1, 1);
  index.remove(*a);
  index.touch(*a);
  EXPECT_EQ(index.size(), 0U);
  index.add(*a);
  index.add(*a);
  EXPECT_EQ(index.size(), 1U);
  index.remove(*a);
  index.remove(*a);
  EXPECT_EQ(index.size(), 0U);
  EXPECT_EQ(index.best(base_score, Nanos(1), [](const Storage&) { return true; }), nullptr);
}

TEST(StorageQueue, IsADeque) {
  std::mt19937 random(1);
  StorageQueue queue;
  std::deque<Storage*> model;
  std::vector<IntrusivePtr<Storage>> storages;
  for (uint32_t id = 1; id <= 12; ++id) storages.push_back(make(id, 1));
  for (int i = 0; i < 5000; ++i) {
    Storage* storage = storages[random() % storages.size()].get();
    std::erase(model, storage);
    switch (random() % 3) {
      case 0:
        queue.push_front(*storage);
        model.push_front(storage);
        break;
      case 1:
        queue.push_back(*storage);
        model.push_back(storage);
        break;
      default: queue.remove(*storage);
    }
    ASSERT_EQ(queue.empty(), model.empty());
    if (!model.empty()) {
      ASSERT_EQ(&queue.front(), model.front());
    }
  }
  while (!model.empty()) {
    ASSERT_EQ(&queue.front(), model.front());
    queue.remove(*model.front());
    model.pop_front();
  }
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace tidemark
