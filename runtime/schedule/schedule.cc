#include "runtime/schedule/schedule.h"

#include <algorithm>

namespace tidemark {

bool in_program_order(const Schedule& schedule) {
  uint32_t next = 0;
  return std::all_of(schedule.code.begin(), schedule.code.end(), [&](const auto& instruction) {
    return !is_program_op(instruction) || instruction.subject == next++;
  });
}

bool releases(const Schedule& schedule) {
  using Do = Schedule::Do;
  return std::any_of(schedule.code.begin(), schedule.code.end(), [](const auto& instruction) {
    return instruction.what == Do::kEvict || instruction.what == Do::kOffload;
  });
}

Bytes max_resident(const Schedule& schedule) {
  std::vector<Bytes> change(schedule.code.size() + 1, Bytes(0));
  for (const Schedule::Block& block : schedule.blocks) {
    change[block.begin] += block.size;
    change[block.end] -= block.size;
  }
  Bytes now{0}, most{0};
  for (const Bytes each : change) most = std::max(most, now += each);
  return most;
}

}  // namespace tidemark
