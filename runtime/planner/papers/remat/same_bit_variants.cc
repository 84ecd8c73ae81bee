#include "runtime/planner/papers/remat/same_bit_variants.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace tidemark::planner::remat {
namespace {

class VariantAdder {
 public:
  VariantAdder(const StepTrace& trace, const StepProblem& step)
      : trace_(trace), step_(step), added_{.problem = step.problem, .offered = 0} {}

  SameBitVariants run() {
    for (NodeId i = 0; i < step_.problem.size(); ++i) {
      if (step_.problem.nodes[i].rider_of != kNoNode) continue;
      const StepTrace::Op& op = trace_.ops[step_.op_of[i]];
      if (op.name == "relu6_grad") relu6(i, op);
      if (op.name == "max_pool2d_grad") pool(i, op);
    }
    return std::move(added_);
  }

 private:
  const Node& node(NodeId i) const { return step_.problem.nodes[i]; }
  int64_t size(uint32_t storage) const { return trace_.storages[storage].size.count(); }

  // The input of the node that holds the storage; kNoNode: it is fixed.
  NodeId holder(NodeId reader, uint32_t storage) const {
    for (const NodeId u : node(reader).variants[0].inputs) {
      const auto& value = step_.value[u];
      if (std::find(value.begin(), value.end(), storage) != value.end()) return u;
    }
    return kNoNode;
  }

  // Each variant again with x in place of `was`.
  void offer_from_x(NodeId i, NodeId was, NodeId x, double speed) {
    std::vector<Variant>& variants = added_.problem.nodes[i].variants;
    ++added_.offered;
    for (const Variant& original : node(i).variants) {
      Variant variant = original;
      variant.name = "from x" + (original.name.empty() ? "" : ", " + original.name);
      variant.time *= speed;
      std::replace(variant.inputs.begin(), variant.inputs.end(), was, x);
      std::sort(variant.inputs.begin(), variant.inputs.end());
      variants.push_back(std::move(variant));
    }
  }

  // (g, y) -> gx, all of one size.
  void relu6(NodeId i, const StepTrace::Op& op) {
    const NodeId y = holder(i, op.inputs[1].storage);
    if (y == kNoNode || y == holder(i, op.inputs[0].storage)) return;
    const std::vector<NodeId>& from = node(y).variants[0].inputs;
    if (trace_.ops[step_.op_of[y]].name != "relu6" || from.size() != 1) return;
    offer_from_x(i, y, from[0], 1);
  }

  // (gy, index) -> gx, which is as large as x.
  void pool(NodeId i, const StepTrace::Op& op) {
    const NodeId index = holder(i, op.inputs[1].storage);
    if (index == kNoNode || index == holder(i, op.inputs[0].storage)) return;
    const NodeId pooled = node(index).rider_of != kNoNode ? node(index).rider_of : index;
    const std::vector<NodeId>& from = node(pooled).variants[0].inputs;
    if (trace_.ops[step_.op_of[pooled]].name != "max_pool2d" || from.size() != 1) return;
    const auto gy = static_cast<double>(size(op.inputs[0].storage));
    const auto read = static_cast<double>(size(op.inputs[1].storage));
    const auto gx = static_cast<double>(size(op.outputs[0]));
    offer_from_x(i, index, from[0], (gy + 2 * gx) / (gy + read + gx));
  }

  const StepTrace& trace_;
  const StepProblem& step_;
  SameBitVariants added_;
};

}  // namespace

SameBitVariants add_same_bit_variants(const StepTrace& trace, const StepProblem& step) {
  return VariantAdder(trace, step).run();
}

}  // namespace tidemark::planner::remat
