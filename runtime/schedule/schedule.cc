#include "runtime/schedule/schedule.h"

#include <algorithm>
#include <unordered_map>

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

std::vector<uint32_t> taken_over(const Schedule& schedule) {
  constexpr uint32_t kNone = Schedule::kScratch;
  std::vector<uint32_t> from(schedule.blocks.size(), kNone);
  std::unordered_map<uint32_t, uint32_t> block_of;  // by storage: its last block so far
  for (uint32_t b = 0; b < schedule.initial_blocks; ++b) {
    block_of[schedule.blocks[b].storage] = b;
  }
  for (const Schedule::Instruction& it : schedule.code) {
    if (it.in_place()) from[it.first_block] = block_of.at(it.overwrites);
    for (uint32_t b = it.first_block; b < it.first_block + it.blocks; ++b) {
      block_of[schedule.blocks[b].storage] = b;
    }
  }
  return from;
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
