#include "runtime/residency/step_recorder.h"

#include <utility>

namespace tidemark {
namespace {

// The name, or empty if `anyway` says the same.
std::string_view if_other(const char* name, const char* anyway) {
  return name == anyway ? "" : name;
}

}  // namespace

void StepRecorder::begin_step() {
  numbering_.begin_step();
  trace_ = {};
  ids_.clear();
  versions_.clear();
}

uint32_t StepRecorder::number(Storage& storage, bool at_start) {
  if (numbering_.has(storage)) return numbering_.of(storage);
  trace_.storages.push_back({.origin = storage.origin(),
                             .category = storage.category,
                             .size = storage.size(),
                             .at_start = at_start,
                             .at_end = true,
                             .may_evict = !storage.evict_pinned,
                             .may_offload = !storage.offload_pinned,
                             .name = if_other(storage.name, storage.origin())});
  ids_.push_back(storage.id());
  versions_.push_back(0);
  return numbering_.number(storage);
}

void StepRecorder::call(const Recipe& call, uint64_t signature, Nanos cost) {
  StepTrace::Op op;
  op.name = call.name();
  op.call = if_other(call.label(), call.name());
  op.signature = signature;
  op.workspace = align_up(call.workspace);
  op.cost = cost;
  op.inputs.reserve(call.inputs.size());
  for (const Recipe::Input& input : call.inputs) {
    const uint32_t storage = number(*input.storage, /*at_start=*/true);
    op.inputs.push_back({storage, versions_[storage], input.written});
    if (input.written) ++versions_[storage];
  }
  for (size_t i = 0; i < op.inputs.size() && i < 32; ++i) {
    if (call.may_overwrite >> i & 1) op.may_overwrite.push_back(op.inputs[i].storage);
  }
  op.outputs.reserve(call.outputs.size());
  for (const Recipe::Output& output : call.outputs) {
    if (output.storage) op.outputs.push_back(number(*output.storage, /*at_start=*/false));
  }
  trace_.ops.push_back(std::move(op));
}

void StepRecorder::upload(Storage& storage) {
  StepTrace::Op op{.kind = StepTrace::Kind::kUpload, .name = storage.origin()};
  op.outputs.push_back(number(storage, /*at_start=*/false));
  trace_.ops.push_back(std::move(op));
}

void StepRecorder::read(Storage& storage) {
  StepTrace::Op op{.kind = StepTrace::Kind::kRead, .name = "read"};
  const uint32_t item = number(storage, /*at_start=*/true);
  op.inputs.push_back({item, versions_[item], false});
  trace_.ops.push_back(std::move(op));
}

void StepRecorder::unused(const Storage& storage) {
  if (!numbering_.has(storage) || trace_.ops.empty()) return;
  const uint32_t item = numbering_.of(storage);
  if (!std::exchange(trace_.storages[item].at_end, false)) return;
  trace_.ops.back().released.push_back(item);
  // The final name: a gradient is named once it is collected.
  trace_.storages[item].name = if_other(storage.name, storage.origin());
}

StepTrace StepRecorder::end_step() {
  numbering_.end_step();
  return std::exchange(trace_, {});
}

}  // namespace tidemark
