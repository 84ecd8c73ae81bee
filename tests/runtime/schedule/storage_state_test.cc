// Every change from every state: the resulting state, or a refusal.
#include "runtime/schedule/storage_state.h"

#include <gtest/gtest.h>

#include <functional>
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

using Results = std::vector<std::string>;

// The result of a change for empty, resident, resident+copy, evicted, offloaded+copy, dead and
// lost; "-": it is refused, and nothing has changed.
Results results(const std::function<void(StorageState&)>& change) {
  Results found;
  for (const StorageState& before :
       {in(Residence::kEmpty, false), in(Residence::kResident, false),
        in(Residence::kResident, true), in(Residence::kEvicted, false),
        in(Residence::kOffloaded, true), in(Residence::kDead, false),
        in(Residence::kLost, false)}) {
    StorageState after = before;
    try {
      change(after);
      found.push_back(text(after));
    } catch (const std::logic_error&) {
      EXPECT_EQ(text(after), text(before)) << "a refusal changes nothing";
      found.emplace_back("-");
    }
  }
  return found;
}

TEST(StorageState, TakesABlockWhereItHasNone) {
  EXPECT_EQ(results([](StorageState& s) { s.take_block(); }),
            (Results{"resident", "-", "-", "resident", "resident+copy", "resident", "-"}));
}

TEST(StorageState, LeavesItsBlockOnceAndIsOffloadedWithACopyAlone) {
  EXPECT_EQ(results([](StorageState& s) { s.leave(Residence::kOffloaded); }),
            (Results{"-", "-", "offloaded+copy", "-", "-", "-", "-"}));
  // With a copy it is not evicted: the copy would be for nobody.
  EXPECT_EQ(results([](StorageState& s) { s.leave(Residence::kEvicted); }),
            (Results{"-", "evicted", "-", "-", "-", "-", "-"}));
}

TEST(StorageState, IsCopiedOutWhereItIsDirty) {
  EXPECT_EQ(results([](StorageState& s) { s.copy_out(); }),
            (Results{"-", "resident+copy", "-", "-", "-", "-", "-"}));
}

TEST(StorageState, IsEvictedWhereItsOnlyCopyIsGivenUp) {
  EXPECT_EQ(results([](StorageState& s) { s.drop_copy(); }),
            (Results{"-", "-", "resident", "-", "evicted", "-", "-"}));
}

TEST(StorageState, DiesWithoutUsersAndBlock) {
  StorageState used = in(Residence::kEvicted, false);
  used.users = 1;
  EXPECT_THROW(used.die(), std::logic_error);
  // With a copy it does not die: its space would be lost.
  EXPECT_EQ(results([](StorageState& s) { s.die(); }),
            (Results{"-", "-", "-", "dead", "-", "-", "-"}));
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
