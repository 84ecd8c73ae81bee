#include "runtime/residency/step_recorder.h"

#include <algorithm>
#include <utility>

namespace tidemark {
namespace {

// The name, or empty if `anyway` says the same.
std::string_view if_other(const char* name, const char* anyway) {
  return name == anyway ? "" : name;
}

// `inputs`: those of the trace, in the order of the call's.
std::vector<uint32_t> overwritable(const Recipe& call,
                                   const std::vector<StepTrace::Input>& inputs) {
  std::vector<uint32_t> storages;
  for (size_t i = 0; i < inputs.size() && i < 32; ++i) {
    if (call.may_overwrite >> i & 1) storages.push_back(inputs[i].storage);
  }
  return storages;
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
  op.may_overwrite = overwritable(call, op.inputs);
  op.outputs.reserve(call.outputs.size());
  for (const Recipe::Output& output : call.outputs) {
    if (output.storage) op.outputs.push_back(number(*output.storage, /*at_start=*/false));
  }
  trace_.ops.push_back(std::move(op));
}

// Whether this step has all that the variant reads, with those contents, and has made what it
// does without: a storage from before has its recipe in a program's first step only.
bool StepRecorder::may_record(const Recipe& variant, const Recipe& call) const {
  const auto is_there = [this](const Recipe::Input& input) {
    return numbering_.has(*input.storage) && input.version == input.storage->version() &&
           !input.written;
  };
  const auto may_be_left_out = [&](const Recipe::Input& input) {
    const auto same = [&](const Recipe::Input& other) {
      return other.storage == input.storage;
    };
    return !trace_.storages[numbering_.of(*input.storage)].at_start ||
           std::any_of(variant.inputs.begin(), variant.inputs.end(), same);
  };
  return std::all_of(variant.inputs.begin(), variant.inputs.end(), is_there) &&
         std::all_of(call.inputs.begin(), call.inputs.end(), may_be_left_out);
}

void StepRecorder::call(const Recipe& recipe, const CostModel& costs) {
  call(recipe, costs.signature(recipe.cost_key), costs.time(recipe.cost_key));
  for (const IntrusivePtr<Recipe>& other : recipe.variants()) {
    if (!may_record(*other, recipe)) continue;
    StepTrace::Variant variant{.name = other->name(),
                               .signature = costs.signature(other->cost_key),
                               .workspace = align_up(other->workspace),
                               .cost = costs.time(other->cost_key)};
    for (const Recipe::Input& input : other->inputs) {
      const uint32_t storage = numbering_.of(*input.storage);
      variant.inputs.push_back({storage, versions_[storage], false});
    }
    variant.may_overwrite = overwritable(*other, variant.inputs);
    trace_.ops.back().variants.push_back(std::move(variant));
  }
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
