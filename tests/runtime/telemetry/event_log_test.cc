#include "runtime/telemetry/event_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

namespace tidemark {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

EventRecord storage_event(uint32_t storage) {
  EventRecord event;
  event.kind = EventKind::kEvict;
  event.storage = storage;
  return event;
}

std::vector<uint32_t> storages(const EventLog& log) {
  std::vector<uint32_t> result;
  log.for_each([&](const EventRecord& event) { result.push_back(event.storage); });
  return result;
}

TEST(EventLogTest, TagsCountFromOne) {
  EventLog log(4);
  EXPECT_EQ(log.next_tag(), 1U);
  EventRecord event = storage_event(10);
  event.tag = 99;  // not the caller's to choose
  EXPECT_EQ(log.record(event), 1U);
  EXPECT_EQ(log.record(storage_event(20)), 2U);
  EXPECT_EQ(log.next_tag(), 3U);
  EXPECT_EQ(log.find(1)->tag, 1U);
  EXPECT_EQ(log.find(2)->storage, 20U);
  EXPECT_EQ(log.find(3), nullptr);
  EXPECT_EQ(log.find(0), nullptr);
}

//   capacity 3:  1 2 3  ->  4 2 3  ->  4 5 3
TEST(EventLogTest, TheOldestFallOut) {
  EventLog log(3);
  EXPECT_THAT(storages(log), IsEmpty());
  for (uint32_t i = 1; i <= 5; ++i) log.record(storage_event(10 * i));
  EXPECT_THAT(storages(log), ElementsAre(30, 40, 50));
  EXPECT_EQ(log.size(), 3U);
  EXPECT_EQ(log.dropped(), 2U);
  EXPECT_EQ(log.find(2), nullptr);
  EXPECT_EQ(log.find(3)->storage, 30U);
  EXPECT_EQ(log.events().front().tag, 3U);
}

TEST(EventLogTest, NothingIsDroppedUntilItIsFull) {
  EventLog log(3);
  for (uint32_t i = 0; i < 3; ++i) log.record(storage_event(i));
  EXPECT_EQ(log.dropped(), 0U);
  EXPECT_EQ(log.size(), 3U);
}

TEST(EventLogTest, CompletionsFindTheirEvent) {
  EventLog log(2);
  const uint64_t first = log.record(storage_event(1));
  const uint64_t second = log.record(storage_event(2));
  log.complete(second, Nanos(100), Nanos(250));
  EXPECT_EQ(log.find(second)->start, Nanos(100));
  EXPECT_EQ(log.find(second)->end, Nanos(250));
  EXPECT_EQ(log.find(first)->end, Nanos(0));

  const uint64_t third = log.record(storage_event(3));  // takes the place of the first
  log.complete(first, Nanos(1), Nanos(2));
  log.complete(0, Nanos(1), Nanos(2));
  log.complete(third + 1, Nanos(1), Nanos(2));
  EXPECT_EQ(log.find(third)->end, Nanos(0));
}

TEST(EventLogTest, ALogOfNothingIsAMistake) { EXPECT_THROW(EventLog(0), std::logic_error); }

TEST(EventLogTest, EveryKindAndReasonHasAName) {
  std::set<std::string_view> names;
  for (int kind = 0; kind <= static_cast<int>(EventKind::kOutOfMemory); ++kind) {
    names.insert(to_string(static_cast<EventKind>(kind)));
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(EventKind::kOutOfMemory) + 1);
  EXPECT_FALSE(names.contains("?"));
  names.clear();
  for (int reason = 0; reason <= static_cast<int>(Reason::kPlan); ++reason) {
    names.insert(to_string(static_cast<Reason>(reason)));
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(Reason::kPlan) + 1);
  EXPECT_FALSE(names.contains("?"));
}

}  // namespace
}  // namespace tidemark
