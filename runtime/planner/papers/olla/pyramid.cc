#include "runtime/planner/papers/olla/pyramid.h"

#include <tuple>

#include "runtime/planner/layout/heuristics.h"

namespace tidemark::planner::olla {

std::vector<std::pair<int, Offset>> pyramid(const std::vector<Buffer>& buffers) {
  std::vector<std::pair<int, Offset>> stack;
  std::vector<bool> used(buffers.size(), false);
  Offset top;
  const Buffer* below = nullptr;
  for (;;) {
    int longest = -1;
    std::pair<int64_t, Bytes> best;
    for (size_t i = 0; i < buffers.size(); ++i) {
      const Buffer& b = buffers[i];
      if (used[i] || is_empty(b)) continue;
      if (below != nullptr && (b.begin < below->begin || b.end > below->end)) continue;
      const std::pair key(b.end - b.begin, b.size);
      if (longest >= 0 && key <= best) continue;
      longest = static_cast<int>(i);
      best = key;
    }
    if (longest < 0) return stack;
    used[longest] = true;
    stack.emplace_back(longest, top);
    top = top + buffers[longest].size;
    below = &buffers[longest];
  }
}

}  // namespace tidemark::planner::olla
