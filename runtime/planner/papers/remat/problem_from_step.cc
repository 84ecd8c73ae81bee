#include "runtime/planner/papers/remat/problem_from_step.h"

#include <algorithm>
#include <string>
#include <utility>

namespace tidemark::planner::remat {
namespace {

class StepConverter {
 public:
  explicit StepConverter(const StepTrace& trace)
      : trace_(trace),
        value_of_(trace.storages.size(), kNoNode),
        is_alone_(trace.storages.size()),
        last_reader_(trace.storages.size()) {}

  StepProblem run() {
    Problem& problem = result_.problem;
    problem.unit_time = "ms";
    for (size_t k = 0; k < trace_.ops.size(); ++k) {
      for (const auto& input : trace_.ops[k].inputs) last_reader_[input.storage] = k;
    }
    for (const StepTrace::Storage& storage : trace_.storages) {
      if (storage.at_start) problem.fixed_bytes += storage.size.count();
    }
    for (size_t k = 0; k < trace_.ops.size(); ++k) convert(static_cast<uint32_t>(k));
    for (const Node& node : problem.nodes) problem.base_time += node.variants[0].time;
    return std::move(result_);
  }

 private:
  NodeId add(Node node, uint32_t op) {
    auto& inputs = node.variants[0].inputs;
    std::sort(inputs.begin(), inputs.end());
    inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
    result_.problem.nodes.push_back(std::move(node));
    result_.op_of.push_back(op);
    return result_.problem.size() - 1;
  }
  int64_t bytes(uint32_t storage) const { return trace_.storages[storage].size.count(); }

  void convert(uint32_t k) {
    const StepTrace::Op& op = trace_.ops[k];
    if (op.kind == StepTrace::Kind::kUpload) {
      for (const uint32_t s : op.outputs) result_.problem.fixed_bytes += bytes(s);
      return;
    }
    Node node;
    node.name = std::string(op.name) + "." + std::to_string(k);
    node.required = op.kind == StepTrace::Kind::kRead;
    Variant variant;
    variant.time = static_cast<double>(op.cost.count()) * 1e-6;
    variant.workspace = op.workspace.count();
    for (const StepTrace::Input& input : op.inputs) {
      if (value_of_[input.storage] != kNoNode) {
        variant.inputs.push_back(value_of_[input.storage]);
      }
    }
    std::vector<uint32_t> made;  // what the node's value consists of
    for (const uint32_t s : op.outputs) {
      if (trace_.storages[s].at_end) {
        node.adds_fixed += bytes(s);
        node.required = node.once = true;
      } else {
        made.push_back(s);
      }
    }
    std::vector<uint32_t> written;
    for (const StepTrace::Input& input : op.inputs) {
      if (!input.written) continue;
      node.required = node.once = true;
      written.push_back(input.storage);
      const NodeId old = value_of_[input.storage];
      if (trace_.storages[input.storage].at_start || old == kNoNode) continue;
      if (trace_.storages[input.storage].at_end) continue;  // its bytes are fixed already
      made.push_back(input.storage);
      if (is_alone_[input.storage] != 0 && variant.overwrites == kNoNode) {
        variant.overwrites = old;
        variant.workspace -= bytes(input.storage);
      }
    }
    std::sort(made.begin(), made.end(), [&](uint32_t a, uint32_t b) {
      return std::pair(bytes(b), a) < std::pair(bytes(a), b);
    });
    const std::vector<uint32_t> apart = split_off(made);
    int64_t apart_bytes = 0;
    for (const uint32_t s : apart) apart_bytes += bytes(s);
    for (const uint32_t s : made) node.bytes += bytes(s);
    variant.workspace += apart_bytes;
    node.variants.push_back(std::move(variant));
    const bool once = node.once;
    const NodeId id = add(std::move(node), k);
    for (const uint32_t s : made) value_of_[s] = id;
    for (const uint32_t s : op.outputs) {
      if (trace_.storages[s].at_end) value_of_[s] = id;
    }
    for (const uint32_t s : written) value_of_[s] = id;
    if (made.size() == 1) is_alone_[made[0]] = 1;
    if (apart.empty()) return;
    Node rider;
    rider.name = std::string(op.name) + "." + std::to_string(k) + ".more";
    rider.bytes = apart_bytes;
    rider.once = once;
    rider.rider_of = id;
    rider.variants.emplace_back();
    const NodeId rider_id = add(std::move(rider), k);
    for (const uint32_t s : apart) value_of_[s] = rider_id;
  }

  // Takes from `made`, the largest first, those whose last reader is not the largest one's.
  std::vector<uint32_t> split_off(std::vector<uint32_t>& made) const {
    std::vector<uint32_t> apart;
    if (made.empty()) return apart;
    const size_t last = last_reader_[made[0]];
    std::erase_if(made, [&](uint32_t s) {
      if (last_reader_[s] == last) return false;
      apart.push_back(s);
      return true;
    });
    return apart;
  }

  const StepTrace& trace_;
  StepProblem result_;
  std::vector<NodeId> value_of_;  // by storage: the node whose value holds it
  std::vector<char> is_alone_;    // by storage: its node's value is nothing else
  std::vector<size_t> last_reader_;
};

}  // namespace

StepProblem problem_from_step(const StepTrace& trace) { return StepConverter(trace).run(); }

}  // namespace tidemark::planner::remat
