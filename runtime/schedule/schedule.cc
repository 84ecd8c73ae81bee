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

}  // namespace tidemark
