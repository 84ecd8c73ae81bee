#include "models/optim/groups.h"

#include <algorithm>
#include <utility>

namespace tidemark {

std::vector<std::vector<size_t>> in_groups(
    std::span<const GroupMember> members, const UpdateGroups& limits,
    const std::function<bool(std::span<const size_t> open, size_t next)>& may_join) {
  Bytes largest{0};
  for (const GroupMember& member : members) largest = std::max(largest, member.bytes);
  const Bytes room = std::min(limits.most_of_group, largest);
  std::vector<std::vector<size_t>> groups;
  std::vector<size_t> open;
  Bytes bytes{0};
  for (size_t i = 0; i < members.size(); ++i) {
    if (members[i].alone || members[i].bytes > room) {
      groups.push_back({i});
      continue;
    }
    const bool fits = bytes + members[i].bytes <= room &&
                      open.size() < limits.most_parameters && may_join(open, i);
    if (!fits && !open.empty()) {
      groups.push_back(std::exchange(open, {}));
      bytes = Bytes(0);
    }
    open.push_back(i);
    bytes += members[i].bytes;
  }
  if (!open.empty()) groups.push_back(std::move(open));
  return groups;
}

}  // namespace tidemark
