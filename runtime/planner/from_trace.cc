#include "runtime/planner/from_trace.h"

#include <algorithm>
#include <string>
#include <utility>

namespace tidemark::planner {
namespace {

Kind kind_of(Category category) {
  switch (category) {
    case Category::kParameter:
    case Category::kBuffer: return Kind::kParameter;
    case Category::kOptimizerState: return Kind::kOptimizerState;
    case Category::kGradient: return Kind::kGradient;
    case Category::kData: return Kind::kData;
    case Category::kActivation:
    case Category::kWorkspace: break;
  }
  return Kind::kActivation;
}

class Converter {
 public:
  Converter(const StepTrace& graph, const FromTraceOptions& options)
      : graph_(graph), options_(options), names_(graph.storages.size()) {}

  Problem run() {
    for (const StepTrace::Storage& from : graph_.storages) {
      const bool apart = options_.residents_apart && from.at_start && from.at_end;
      problem_.storages.push_back({.name = std::string(from.label()),
                                   .size = apart ? Bytes(0) : align_up(from.size),
                                   .kind = kind_of(from.category),
                                   .at_start = from.at_start,
                                   .at_end = from.at_end});
    }
    for (size_t s = 0; s < names_.size(); ++s) names_[s].id = static_cast<StorageId>(s);
    for (size_t k = 0; k < graph_.ops.size(); ++k) convert(graph_.ops[k], static_cast<OpId>(k));
    // At the step's end, a storage that stays is needed in its last version.
    for (size_t s = 0; s < names_.size(); ++s) {
      if (!graph_.storages[s].at_end || names_[s].id == static_cast<StorageId>(s)) continue;
      problem_.storages[static_cast<size_t>(names_[s].id)].at_end = true;
    }
    return std::move(problem_);
  }

 private:
  // The current version of a storage.
  struct Name {
    StorageId id = kNone;
    std::vector<OpId> readers;  // since it was written
  };

  void convert(const StepTrace::Op& from, OpId k) {
    Operator op;
    op.name = from.label();
    op.workspace = align_up(from.workspace);
    op.cost = from.cost;
    const auto comes_after = [&](OpId before) {
      if (before != k) op.after.push_back(before);
    };
    const auto read = [&](uint32_t storage) {
      Name& name = names_[storage];
      if (std::find(op.inputs.begin(), op.inputs.end(), name.id) != op.inputs.end()) return;
      op.inputs.push_back(name.id);
      name.readers.push_back(k);
    };
    for (const StepTrace::Input& input : from.inputs) read(input.storage);
    for (const StepTrace::Input& input : from.inputs) {
      if (!input.written) continue;
      Name& name = names_[input.storage];
      for (const OpId reader : name.readers) comes_after(reader);
      const StepTrace::Storage& storage = graph_.storages[input.storage];
      const auto root = static_cast<StorageId>(input.storage);
      const auto next = static_cast<StorageId>(problem_.storages.size());
      problem_.storages.push_back(
          {.name = std::string(storage.label()) + "@" + std::to_string(input.version + 1),
           .size = problem_.storages[input.storage].size,
           .kind = problem_.storages[input.storage].kind,
           .alias_of = root});
      op.outputs.push_back(next);
      name = {next, {}};
    }
    for (const uint32_t output : from.outputs) {
      op.outputs.push_back(static_cast<StorageId>(output));
    }
    if (options_.in_place) {
      for (const uint32_t input : from.may_overwrite) offer(k, input, from.outputs.front());
    }
    for (const uint32_t released : from.released) {
      const StorageId id = names_[released].id;
      const bool made_here =
          std::find(op.outputs.begin(), op.outputs.end(), id) != op.outputs.end();
      if (!made_here) read(released);
    }
    if (barrier_ != kNone) comes_after(barrier_);
    if (from.kind == StepTrace::Kind::kRead) {
      for (OpId before = barrier_ + 1; before < k; ++before) comes_after(before);
      barrier_ = k;
    }
    std::sort(op.after.begin(), op.after.end());
    op.after.erase(std::unique(op.after.begin(), op.after.end()), op.after.end());
    problem_.operators.push_back(std::move(op));
  }

  // Later versions are not offered: they are names for the storage of the first version.
  void offer(OpId op, uint32_t input, uint32_t output) {
    const auto from = static_cast<StorageId>(input), to = static_cast<StorageId>(output);
    if (names_[input].id != from || graph_.storages[input].at_end ||
        problem_.storages[input].size != problem_.storages[output].size) {
      return;
    }
    problem_.may_be_in_place.push_back({op, from, to});
  }

  const StepTrace& graph_;
  const FromTraceOptions& options_;
  Problem problem_;
  std::vector<Name> names_;
  OpId barrier_ = kNone;  // the last read
};

}  // namespace

Problem problem_from_trace(const StepTrace& graph, const FromTraceOptions& options) {
  return Converter(graph, options).run();
}

}  // namespace tidemark::planner
