#include "runtime/planner/layout/sections.h"

namespace tidemark::planner {

Sections make_sections(const std::vector<Buffer>& buffers) {
  Sections sections;
  sections.first.assign(buffers.size(), 0);
  sections.last.assign(buffers.size(), 0);
  // A set is maximal where an end follows a begin.
  int section = 0;
  bool grew = false;
  for (const LifetimeEvent& event : lifetime_events(buffers)) {
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
