// A session's decisions about memory, written down line by line: its events, and where blocks
// lay. Runs on the simulator repeat to the byte, so a fingerprint of the lines shows whether a
// change to the runtime changed a decision.
//
// Storages are numbered by first appearance, so the assignment of ids does not matter.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/executor/step_planner.h"
#include "runtime/session/session.h"
#include "tests/support/golden.h"

namespace tidemark::testing {

class Decisions {
 public:
  // A line that says where the storage lies in the arena.
  void add_offset(const Storage& storage) {
    const std::optional<Offset> at = offset_of(storage);
    add("at " + (at ? std::to_string(at->value()) : "none"));
  }
  // Adds a line for each event that the session still holds.
  void add_events(Session& session) {
    EXPECT_EQ(session.events().dropped(), 0u) << "a larger event_capacity is needed";
    session.events().for_each([&](const EventRecord& event) {
      const bool mark =
          event.kind == EventKind::kStepBegin || event.kind == EventKind::kStepEnd;
      add(std::string(to_string(event.kind)) + ' ' + std::string(to_string(event.reason)) +
          ' ' + event.op + ' ' + std::to_string(mark ? event.storage : number(event.storage)) +
          ' ' + std::to_string(event.bytes.count()) + " at " +
          std::to_string(event.issued.count()) + " from " +
          std::to_string(event.start.count()) + " to " + std::to_string(event.end.count()) +
          ", in use " + std::to_string(event.used.count()));
      ++kinds_[event.kind];
    });
  }
  void add(const std::string& line) {
    for (const char c : line + '\n') {
      hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 1099511628211ULL;  // FNV-1a
    }
    ++lines_;
    if (keep_) text_ += line + '\n';
  }

  int64_t count(EventKind kind) const {
    const auto found = kinds_.find(kind);
    return found == kinds_.end() ? 0 : found->second;
  }
  std::string fingerprint() const {
    char text[64];
    std::snprintf(text, sizeof text, "%lld lines, %016llx", static_cast<long long>(lines_),
                  static_cast<unsigned long long>(hash_));
    return text;
  }
  // Empty unless TIDEMARK_DECISIONS names a folder.
  const std::string& text() const { return text_; }

 private:
  uint32_t number(uint32_t id) {
    if (id == 0) return 0;
    return numbers_.try_emplace(id, static_cast<uint32_t>(numbers_.size() + 1)).first->second;
  }

  std::map<uint32_t, uint32_t> numbers_;
  std::map<EventKind, int64_t> kinds_;
  uint64_t hash_ = 14695981039346656037ULL;
  int64_t lines_ = 0;
  const bool keep_ = std::getenv("TIDEMARK_DECISIONS") != nullptr;
  std::string text_;
};

// Plans at the end of a step, bounded by counted work alone, whether or not it makes steps
// quicker. Reports are written down.
inline PlanOptions repeatable_plans(Decisions& decisions) {
  PlanOptions options;
  options.planner.limits = {.seconds = 1e9, .nodes = 20'000};
  options.background = false;
  options.max_slowdown = std::numeric_limits<double>::infinity();
  // Leaves out fingerprints, which change with any number of any schedule.
  options.report = [&decisions](std::string_view line) {
    decisions.add(std::string(line.substr(0, line.find("; plan "))));
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
