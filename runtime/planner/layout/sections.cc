#include "runtime/planner/layout/sections.h"

#include <algorithm>

namespace tidemark::planner {

Sections make_sections(const std::vector<Buffer>& buffers) {
  struct Event {
    int64_t time;
    bool begins;
    int buffer;
  };
  std::vector<Event> events;
  events.reserve(2 * buffers.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    events.push_back({buffers[i].begin, true, static_cast<int>(i)});
    events.push_back({buffers[i].end, false, static_cast<int>(i)});
  }
  // Ends sort before begins at the same time: lifetimes are half-open.
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    if (a.time != b.time) return a.time < b.time;
    if (a.begins != b.begins) return b.begins;
    return a.buffer < b.buffer;
  });

  Sections sections;
  sections.first.assign(buffers.size(), 0);
  sections.last.assign(buffers.size(), 0);
  // A set is maximal where an end follows a begin.
  int section = 0;
  bool grew = false;
  for (const Event& event : events) {
    if (event.begins) {
      sections.first[event.buffer] = section;
      grew = true;
    } else {
      if (grew) ++section;
      grew = false;
      sections.last[event.buffer] = section;
    }
  }
  sections.members.resize(section);
  for (size_t i = 0; i < buffers.size(); ++i) {
    for (int s = sections.first[i]; s < sections.last[i]; ++s) {
      sections.members[s].push_back(static_cast<int>(i));
    }
  }
  return sections;
}

std::vector<std::vector<int>> Sections::neighbours() const {
  std::vector<std::vector<int>> result(first.size());
  for (size_t i = 0; i < first.size(); ++i) {
    std::vector<int>& mine = result[i];
    for (const int j : members[first[i]]) {
      if (j != static_cast<int>(i)) mine.push_back(j);
    }
    for (int s = first[i] + 1; s < last[i]; ++s) {
      for (const int j : members[s]) {
        if (first[j] == s) mine.push_back(j);
      }
    }
  }
  return result;
}

}  // namespace tidemark::planner
