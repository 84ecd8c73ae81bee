// Every change from every state: the resulting state, or a refusal.
#include "runtime/schedule/storage_state.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace tidemark {
namespace {

StorageState in(Residence residence, bool copy) {
  StorageState state;
  if (residence == Residence::kEmpty) return state;
  if (residence == Residence::kLost) {
    state.lose();
    return state;
  }
  state.take_block();
  if (copy) state.copy_out();
  if (residence != Residence::kResident) state.leave(residence);
  return state;
}

std::string text(const StorageState& state) {
  static const char* const kNames[] = {"empty",     "resident", "evicted",
                                       "offloaded", "dead",     "lost"};
  return std::string(kNames[static_cast<int>(state.residence())]) +
         (state.has_copy() ? "+copy" : "");
}

// The result of a change for each state; "-": it is refused, and nothing has changed.
std::map<std::string, std::string> results(const std::function<void(StorageState&)>& change) {
  std::map<std::string, std::string> found;
  for (const StorageState& before :
       {in(Residence::kEmpty, false), in(Residence::kResident, false),
        in(Residence::kResident, true), in(Residence::kEvicted, false),
        in(Residence::kOffloaded, true), in(Residence::kDead, false),
        in(Residence::kLost, false)}) {
    StorageState after = before;
    try {
      change(after);
      found[text(before)] = text(after);
    } catch (const std::logic_error&) {
      EXPECT_EQ(text(after), text(before)) << "a refusal changes nothing";
      found[text(before)] = "-";
    }
  }
  return found;
}

using Results = std::map<std::string, std::string>;

TEST(StorageState, TakesABlockWhereItHasNone) {
  EXPECT_EQ(results([](StorageState& s) { s.take_block(); }),
            (Results{{"empty", "resident"},
                     {"resident", "-"},
                     {"resident+copy", "-"},
                     {"evicted", "resident"},
                     {"offloaded+copy", "resident+copy"},
                     {"dead", "resident"},
                     {"lost", "-"}}));
}

TEST(StorageState, LeavesItsBlockOnceAndIsOffloadedWithACopyAlone) {
  EXPECT_EQ(results([](StorageState& s) { s.leave(Residence::kOffloaded); }),
            (Results{{"empty", "-"},
                     {"resident", "-"},
                     {"resident+copy", "offloaded+copy"},
                     {"evicted", "-"},
                     {"offloaded+copy", "-"},
                     {"dead", "-"},
                     {"lost", "-"}}));
  const Results evicted = results([](StorageState& s) { s.leave(Residence::kEvicted); });
  EXPECT_EQ(evicted.at("resident"), "evicted");
  EXPECT_EQ(evicted.at("resident+copy"), "-") << "its copy would be for nobody";
  EXPECT_EQ(evicted.at("offloaded+copy"), "-");
}

TEST(StorageState, IsCopiedOutWhereItIsDirty) {
  EXPECT_EQ(results([](StorageState& s) { s.copy_out(); }),
            (Results{{"empty", "-"},
                     {"resident", "resident+copy"},
                     {"resident+copy", "-"},
                     {"evicted", "-"},
                     {"offloaded+copy", "-"},
                     {"dead", "-"},
                     {"lost", "-"}}));
}

TEST(StorageState, IsEvictedWhereItsOnlyCopyIsGivenUp) {
  EXPECT_EQ(results([](StorageState& s) { s.drop_copy(); }),
            (Results{{"empty", "-"},
                     {"resident", "-"},
                     {"resident+copy", "resident"},
                     {"evicted", "-"},
                     {"offloaded+copy", "evicted"},
                     {"dead", "-"},
                     {"lost", "-"}}));
}

TEST(StorageState, DiesWithoutUsersAndBlock) {
  StorageState used = in(Residence::kEvicted, false);
  used.users = 1;
  EXPECT_THROW(used.die(), std::logic_error);
  const Results died = results([](StorageState& s) { s.die(); });
  EXPECT_EQ(died.at("empty"), "-");
  EXPECT_EQ(died.at("resident"), "-");
  EXPECT_EQ(died.at("evicted"), "dead");
  EXPECT_EQ(died.at("offloaded+copy"), "-") << "its space would be lost";
}

// Holds for any changes, in any order.
TEST(StorageState, NeverHasACopyOfBytesThatAreNowhere) {
  std::mt19937 random(7);
  const std::vector<std::function<void(StorageState&)>> changes = {
      [](StorageState& s) { s.take_block(); },
      [](StorageState& s) { s.leave(Residence::kEvicted); },
      [](StorageState& s) { s.leave(Residence::kOffloaded); },
      [](StorageState& s) { s.leave(Residence::kDead); },
      [](StorageState& s) { s.copy_out(); },
      [](StorageState& s) { s.drop_copy(); },
      [](StorageState& s) { s.die(); }};
  StorageState state;
  int refused = 0;
  for (int i = 0; i < 10'000; ++i) {
    try {
      changes[random() % changes.size()](state);
    } catch (const std::logic_error&) {
      ++refused;
    }
    ASSERT_EQ(state.clean(), state.resident() && state.has_copy());
    ASSERT_TRUE(!state.offloaded() || state.has_copy());
    const bool nowhere =
        state.residence() == Residence::kDead || state.residence() == Residence::kEmpty;
    ASSERT_FALSE(nowhere && state.has_copy());
    ASSERT_FALSE(state.evicted() && state.has_copy());
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace tidemark
