// A session's decisions about memory, written down one by one: its events, and where blocks
// lay. Runs on the simulator repeat to the byte, so a fingerprint of all records shows whether
// a change to the runtime changed a decision.
//
// The fingerprint is of numbers and enumerators. Names of events and operators and the wording
// of reports are only in the text for people, so rewording changes no fingerprint. Storages and
// operators are numbered by first appearance, so ids and names do not matter.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/core/errors.h"
#include "runtime/core/hash.h"
#include "runtime/executor/step_planner.h"
#include "runtime/session/session.h"
#include "tests/support/golden.h"

namespace tidemark::testing {

class Decisions {
 public:
  // Where the storage lies in the arena.
  void add_offset(const Storage& storage) {
    const std::optional<Offset> at = offset_of(storage);
    add(Record::kOffset, {at ? at->value() : -1},
        "at " + (at ? std::to_string(at->value()) : "none"));
  }
  void add_out_of_memory(const OutOfMemory& error) {
    add(Record::kOutOfMemory, {error.requested().count(), error.budget().count()},
        error.what());
  }
  // Text for people only.
  void add_text(std::string_view line) {
    if (keep_) text_ += std::string(line) + '\n';
  }
  // Each event that the session still holds, and what became of its plans.
  void add_events(Session& session) {
    EXPECT_EQ(session.events().dropped(), 0u) << "a larger event_capacity is needed";
    session.events().for_each([&](const EventRecord& event) {
      const bool mark =
          event.kind == EventKind::kStepBegin || event.kind == EventKind::kStepEnd;
      const uint32_t storage = mark ? event.storage : number(event.storage);
      add(Record::kEvent,
          {static_cast<int64_t>(event.kind), static_cast<int64_t>(event.reason),
           number(event.op), storage, event.bytes.count(), event.issued.count(),
           event.start.count(), event.end.count(), event.used.count()},
          std::string(to_string(event.kind)) + ' ' + std::string(to_string(event.reason)) +
              ' ' + event.op + ' ' + std::to_string(storage) + ' ' +
              std::to_string(event.bytes.count()) + " at " +
              std::to_string(event.issued.count()) + " from " +
              std::to_string(event.start.count()) + " to " + std::to_string(event.end.count()) +
              ", in use " + std::to_string(event.used.count()));
      ++kinds_[event.kind];
    });
    if (session.planner()) add_plans(*session.planner());
  }

  int64_t count(EventKind kind) const {
    const auto found = kinds_.find(kind);
    return found == kinds_.end() ? 0 : found->second;
  }
  std::string fingerprint() const {
    char text[64];
    std::snprintf(text, sizeof text, "%lld records, %016llx", static_cast<long long>(records_),
                  static_cast<unsigned long long>(hash_.value()));
    return text;
  }
  // Empty unless TIDEMARK_DECISIONS names a folder.
  const std::string& text() const { return text_; }

 private:
  enum class Record : uint8_t { kOffset, kEvent, kOutOfMemory, kPlans };

  void add(Record record, std::initializer_list<int64_t> numbers, const std::string& line) {
    hash_.add(static_cast<uint64_t>(record));
    for (const int64_t number : numbers) hash_.add(static_cast<uint64_t>(number));
    ++records_;
    add_text(line);
  }
  void add_plans(const StepPlanner& planner) {
    const PlanCounts& counts = planner.counts();
    const BoundSchedule* const bound = planner.current();
    const Schedule& last = bound ? bound->schedule : Schedule();
    const auto size = [](const auto& list) { return static_cast<int64_t>(list.size()); };
    add(Record::kPlans,
        {counts.plans, counts.planned_steps, counts.mismatches, size(last.code),
         size(last.blocks), last.placed ? 1 : 0, last.peak.count()},
        std::to_string(counts.plans) + " plans for " + std::to_string(counts.planned_steps) +
            " steps, " + std::to_string(counts.mismatches) + " mismatches; the last of " +
            std::to_string(last.code.size()) + " instructions, peak " +
            std::to_string(last.peak.count()));
  }

  uint32_t number(uint32_t id) {
    if (id == 0) return 0;
    return numbers_.try_emplace(id, static_cast<uint32_t>(numbers_.size() + 1)).first->second;
  }
  int64_t number(const char* op) {
    return ops_.try_emplace(op, static_cast<int64_t>(ops_.size())).first->second;
  }

  std::map<uint32_t, uint32_t> numbers_;
  std::map<std::string, int64_t> ops_;
  std::map<EventKind, int64_t> kinds_;
  WordHash hash_;
  int64_t records_ = 0;
  const bool keep_ = std::getenv("TIDEMARK_DECISIONS") != nullptr;
  std::string text_;
};

// Plans at the end of a step, bounded by counted work alone, whether or not it makes steps
// quicker. Reports are in the text.
inline PlanOptions repeatable_plans(Decisions& decisions) {
  PlanOptions options;
  options.planner.limits = {.seconds = 1e9, .nodes = 20'000};
  options.background = false;
  options.max_slowdown = std::numeric_limits<double>::infinity();
  // Leaves out fingerprints, which change with any number of any schedule.
  options.report = [&decisions](std::string_view line) {
    decisions.add_text(line.substr(0, line.find("; plan ")));
  };
  return options;
}

// Compares fingerprints with those in a file. With TIDEMARK_DECISIONS=DIR, the lines are
// written to DIR, one file per case, and the fingerprints found to DIR/<file's name>. To see
// what differs, write them before and after a change. To accept a change, copy that file here.
class GoldenDecisions {
 public:
  explicit GoldenDecisions(const std::string& path)
      : name_(std::filesystem::path(path).filename()), expected_(read_golden(path)) {
    if (const char* folder = std::getenv("TIDEMARK_DECISIONS")) folder_ = folder;
  }
  ~GoldenDecisions() {
    if (!folder_.empty()) std::ofstream(folder_ / name_) << found_.dump(1) << '\n';
  }
  GoldenDecisions(const GoldenDecisions&) = delete;
  GoldenDecisions& operator=(const GoldenDecisions&) = delete;

  void expect(const std::string& name, const Decisions& decisions) {
    found_[name] = decisions.fingerprint();
    if (!folder_.empty()) std::ofstream(folder_ / (name + ".txt")) << decisions.text();
    const std::string accept = "; to accept: run with TIDEMARK_DECISIONS=DIR and copy DIR/" +
                               name_ + " to tests/golden";
    ASSERT_TRUE(expected_.contains(name)) << "not recorded: " << name << accept;
    EXPECT_EQ(expected_.at(name).get<std::string>(), decisions.fingerprint()) << name << accept;
  }

 private:
  std::string name_;
  Json expected_, found_ = Json::object();
  std::filesystem::path folder_;
};

}  // namespace tidemark::testing
