#include "ops/reduce/groups.h"

namespace tidemark::reduce {

std::vector<Group> merge_groups(const TensorMeta& x, int64_t dims) {
  std::vector<Group> groups;
  for (size_t d = 0; d < x.shape.rank(); ++d) {
    if (x.shape[d] == 1) continue;
    const bool summed = dims >> d & 1;
    Group* last = groups.empty() ? nullptr : &groups.back();
    if (last && last->summed == summed && last->stride == x.strides[d] * x.shape[d]) {
      *last = {last->extent * x.shape[d], x.strides[d], summed};
    } else {
      groups.push_back({x.shape[d], x.strides[d], summed});
    }
  }
  return groups;
}

Groups::Groups(const std::vector<Group>& groups) {
  size_t i = 0;
  if (i < groups.size() && !groups[i].summed) outer = groups[i++];
  if (i < groups.size() && groups[i].summed) summed = groups[i++];
  if (i < groups.size() && !groups[i].summed) inner = groups[i++];
  if (i < groups.size() || summed.stride == 0) return;
  if (inner.extent == 1 && summed.stride == 1) form = Form::kRows;
  if (inner.extent > 1 && inner.stride == 1) form = Form::kColumns;
}

}  // namespace tidemark::reduce
