#include "runtime/schedule/fingerprint.h"

#include <array>
#include <bit>
#include <cinttypes>
#include <cstdio>

#include "runtime/core/hash.h"

namespace tidemark {
namespace {

void add(WordHash& hash, Bytes bytes) { hash.add(static_cast<uint64_t>(bytes.count())); }
void add(WordHash& hash, Nanos time) { hash.add(static_cast<uint64_t>(time.count())); }
void add(WordHash& hash, double number) { hash.add(std::bit_cast<uint64_t>(number)); }

}  // namespace

uint64_t fingerprint(const StepTrace& trace, const PlanLimits& limits,
                     const std::vector<Bytes>& foreign, int64_t work) {
  WordHash hash;
  hash.add(signature_of(trace));
  for (const StepTrace::Op& op : trace.ops) {
    add(hash, op.cost);
    for (const StepTrace::Variant& variant : op.variants) {
      hash.add(variant.signature);
      add(hash, variant.workspace);
      add(hash, variant.cost);
      for (const StepTrace::Input& input : variant.inputs) hash.add(input.storage);
    }
  }
  add(hash, limits.space);
  add(hash, limits.tier_space);
  add(hash, limits.out_bandwidth);
  add(hash, limits.in_bandwidth);
  add(hash, limits.out_beside_bandwidth);
  add(hash, limits.in_beside_bandwidth);
  add(hash, limits.latency);
  add(hash, limits.move_bandwidth);
  add(hash, limits.least_move);
  hash.add(foreign.size());
  for (const Bytes size : foreign) add(hash, size);
  hash.add(static_cast<uint64_t>(work));
  return hash.value();
}

uint64_t fingerprint(const Schedule& schedule) {
  WordHash hash;
  hash.add(schedule.code.size());
  for (const Schedule::Instruction& instruction : schedule.code) {
    hash.add(static_cast<uint64_t>(instruction.what));
    hash.add(instruction.again ? 1 : 0);
    hash.add(instruction.subject);
    hash.add(instruction.first_block);
    hash.add(instruction.blocks);
    hash.add(instruction.overwrites);
    hash.add(instruction.variant);
  }
  hash.add(schedule.blocks.size());
  for (const Schedule::Block& block : schedule.blocks) {
    hash.add(block.storage);
    add(hash, block.size);
    hash.add(block.begin);
    hash.add(block.end);
    hash.add(schedule.placed ? static_cast<uint64_t>(block.at.value()) : 0);
  }
  hash.add(schedule.initial_blocks);
  hash.add(schedule.foreign.size());
  for (const Bytes size : schedule.foreign) add(hash, size);
  hash.add((schedule.placed ? 1U : 0U) | (schedule.residents_apart ? 2U : 0U));
  for (const Bytes bytes :
       {schedule.peak, schedule.peak_bound, schedule.moved, schedule.shortfall}) {
    add(hash, bytes);
  }
  add(hash, schedule.time);
  add(hash, schedule.recomputed);
  return hash.value();
}

std::string fingerprint_text(uint64_t fingerprint) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016" PRIx64, fingerprint);
  return text.data();
}

}  // namespace tidemark
