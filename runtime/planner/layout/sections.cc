#include "runtime/planner/layout/sections.h"

#include <utility>

namespace tidemark::planner {

SectionTimes section_times(const std::vector<Buffer>& buffers) {
  SectionTimes times{std::vector<int>(buffers.size()), std::vector<int>(buffers.size())};
  // A set is maximal where an end follows a begin.
  bool grew = false;
  for (const LifetimeEvent& event : lifetime_events(buffers)) {
    if (!event.begins && grew) ++times.count;
    grew = event.begins;
    (event.begins ? times.first : times.last)[event.buffer] = times.count;
  }
  return times;
}

Sections make_sections(const std::vector<Buffer>& buffers) {
  SectionTimes times = section_times(buffers);
  Sections sections{std::vector<std::vector<int>>(times.count), std::move(times.first),
                    std::move(times.last)};
  for (size_t i = 0; i < buffers.size(); ++i) {
    for (int s = sections.first[i]; s < sections.last[i]; ++s) {
      sections.members[s].push_back(static_cast<int>(i));
    }
  }
  return sections;
}

std::vector<std::vector<int>> Sections::neighbours() const {
  std::vector<std::vector<int>> result(first.size()), begun(members.size());  // by section
  for (size_t j = 0; j < first.size(); ++j) {
    if (first[j] < last[j]) begun[first[j]].push_back(static_cast<int>(j));
  }
  for (size_t i = 0; i < first.size(); ++i) {
    std::vector<int>& mine = result[i];
    for (const int j : members[first[i]]) {
      if (j != static_cast<int>(i)) mine.push_back(j);
    }
    for (int s = first[i] + 1; s < last[i]; ++s)
      mine.insert(mine.end(), begun[s].begin(), begun[s].end());
  }
  return result;
}

}  // namespace tidemark::planner
