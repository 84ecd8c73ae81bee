#include "runtime/planner/papers/olla/pyramid.h"

#include <algorithm>
#include <tuple>

#include "runtime/planner/layout/heuristics.h"

namespace tidemark::planner::olla {

std::vector<std::pair<int, Offset>> pyramid(const std::vector<Buffer>& buffers) {
  std::vector<int> order;
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (!is_empty(buffers[i])) order.push_back(static_cast<int>(i));
  }
  const auto rank = [&](int i) {
    const Buffer& b = buffers[i];
    return std::tuple(b.begin - b.end, -b.size.count(), i);
  };
  std::sort(order.begin(), order.end(), [&](int a, int b) { return rank(a) < rank(b); });
  // What does not lie within one buffer of the stack does not lie within a later one either.
  std::vector<std::pair<int, Offset>> stack;
  Offset top;
  const Buffer* below = nullptr;
  for (const int i : order) {
    const Buffer& b = buffers[i];
    if (below != nullptr && (b.begin < below->begin || b.end > below->end)) continue;
    stack.emplace_back(i, top);
    top = top + b.size;
    below = &b;
  }
  return stack;
}

}  // namespace tidemark::planner::olla
