#include <iterator>
#include <map>
#include <set>

#include "runtime/planner/layout/heuristics.h"

namespace tidemark::planner {
namespace {

// Free space below the highest end so far, by place and by size.
class Holes {
 public:
  Offset take(Bytes size) {
    const auto found = by_size_.lower_bound({size, Offset()});
    if (found == by_size_.end()) {
      // The arena grows; a hole at its very end is used up first.
      Offset place = end_;
      if (!by_place_.empty()) {
        const auto tail = std::prev(by_place_.end());
        if (tail->first + tail->second == end_) {
          place = tail->first;
          erase(tail);
        }
      }
      end_ = place + size;
      return place;
    }
    const auto hole = by_place_.find(found->second);
    const auto [place, room] = *hole;
    erase(hole);
    if (room > size) insert(place + size, room - size);
    return place;
  }
  void give_back(Offset place, Bytes size) {
    const auto after = by_place_.lower_bound(place);
    if (after != by_place_.begin()) {
      const auto before = std::prev(after);
      if (before->first + before->second == place) {
        place = before->first;
        size += before->second;
        erase(before);
      }
    }
    if (after != by_place_.end() && place + size == after->first) {
      size += after->second;
      erase(after);
    }
    insert(place, size);
  }

 private:
  using ByPlace = std::map<Offset, Bytes>;
  void insert(Offset place, Bytes size) {
    by_place_.emplace(place, size);
    by_size_.emplace(size, place);
  }
  void erase(ByPlace::iterator hole) {
    by_size_.erase({hole->second, hole->first});
    by_place_.erase(hole);
  }

  ByPlace by_place_;
  std::set<std::pair<Bytes, Offset>> by_size_;
  Offset end_;
};

}  // namespace

Offsets best_fit_online(const std::vector<Buffer>& buffers) {
  Offsets offsets(buffers.size());
  Holes holes;
  for (const LifetimeEvent& event : lifetime_events(buffers)) {
    if (is_empty(buffers[event.buffer])) continue;
    const Bytes size = buffers[event.buffer].size;
    if (event.begins) {
      offsets[event.buffer] = holes.take(size);
    } else {
      holes.give_back(offsets[event.buffer], size);
    }
  }
  return offsets;
}

}  // namespace tidemark::planner
