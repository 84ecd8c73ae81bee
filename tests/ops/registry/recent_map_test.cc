#include "ops/registry/recent_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace tidemark {
namespace {

std::string name(int i) { return "n" + std::to_string(i); }

TEST(RecentMapTest, KeepsTheLatestAndNoMoreThanItMay) {
  RecentMap<int> map(100);
  for (int i = 0; i < 1000; ++i) {
    map.insert(name(i), i);
    EXPECT_LE(map.size(), 100u);
    for (int j = std::max(0, i - 20); j <= i; j += 20) {
      ASSERT_NE(map.find(name(j)), nullptr) << i << ' ' << j;
      EXPECT_EQ(*map.find(name(j)), j);
    }
  }
  EXPECT_EQ(map.find(name(0)), nullptr);
}

TEST(RecentMapTest, WhatIsUsedStaysAndDoesNotMove) {
  RecentMap<int> map(8);
  const int* const used = &map.insert("used", 7);
  for (int i = 0; i < 100; ++i) {
    map.insert(name(i), i);
    ASSERT_EQ(map.find("used"), used);
  }
  EXPECT_EQ(*used, 7);
}

}  // namespace
}  // namespace tidemark
