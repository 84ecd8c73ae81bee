#include "runtime/planner/papers/remat/same_bit_variants.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace tidemark::planner::remat {
namespace {

constexpr int64_t kBlock = 512;      // sizes are rounded up to it, as in the arena
constexpr int64_t kSignsShare = 32;  // bits of a float32 for each of its sign

int64_t signs_of(int64_t bytes) { return (bytes / kSignsShare + kBlock - 1) / kBlock * kBlock; }

class VariantAdder {
 public:
  VariantAdder(const StepTrace& trace, const StepProblem& step)
      : trace_(trace), step_(step), added_{.problem = step.problem, .offered = 0} {}

  SameBitVariants run() {
    signs_.assign(static_cast<size_t>(step_.problem.size()), Signs{});
    for (NodeId i = 0; i < step_.problem.size(); ++i) {
      if (step_.problem.nodes[i].rider_of != kNoNode) continue;
      const StepTrace::Op& op = trace_.ops[step_.op_of[i]];
      if (op.name == "relu_mask" || op.name == "relu6_grad") {
        relu(i, op);
      } else if (op.name == "max_pool2d_grad") {
        pool(i, op);
      }
    }
    insert_signs();
    return std::move(added_);
  }

 private:
  struct Signs {
    int64_t bytes = 0;  // 0: nobody reads them
    double time = 0;
    std::vector<std::pair<NodeId, size_t>> readers{};  // variants, by node and position
  };

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
  bool has_rider(NodeId i) const {
    return i + 1 < step_.problem.size() && node(i + 1).rider_of == i;
  }

  // Each variant again with `now` in place of `was`. Later positions than the first copy's are
  // copies too.
  size_t offer(NodeId i, NodeId was, NodeId now, double speed, const char* name) {
    std::vector<Variant>& variants = added_.problem.nodes[i].variants;
    const size_t first = variants.size();
    ++added_.offered;
    for (const Variant& original : node(i).variants) {
      Variant variant = original;
      variant.name = name + (original.name.empty() ? "" : ", " + original.name);
      variant.time *= speed;
      std::erase(variant.inputs, was);
      if (now != kNoNode) variant.inputs.push_back(now);
      std::sort(variant.inputs.begin(), variant.inputs.end());
      variants.push_back(std::move(variant));
    }
    return first;
  }

  // (g, y) -> gx, all of one size.
  void relu(NodeId i, const StepTrace::Op& op) {
    const NodeId y = holder(i, op.inputs[1].storage);
    if (y == kNoNode || y == holder(i, op.inputs[0].storage)) return;
    const StepTrace::Op& maker = trace_.ops[step_.op_of[y]];
    if (maker.name == "relu6" && node(y).variants[0].inputs.size() == 1) {
      offer(i, y, node(y).variants[0].inputs[0], 1, "from x");
    }
    if (op.name != "relu_mask" || node(y).rider_of != kNoNode || has_rider(y)) return;
    const auto whole = static_cast<double>(size(op.inputs[1].storage));
    Signs& signs = signs_[y];
    signs.bytes = signs_of(size(op.inputs[1].storage));
    const auto bits = static_cast<double>(signs.bytes);
    signs.time = node(i).variants[0].time * (whole + bits) / (3 * whole);
    const size_t first = offer(i, y, kNoNode, (2 * whole + bits) / (3 * whole), "from signs");
    for (size_t v = first; v < added_.problem.nodes[i].variants.size(); ++v) {
      signs.readers.emplace_back(i, v);
    }
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
    offer(i, index, from[0], (gy + 2 * gx) / (gy + read + gx), "from x");
  }

  // The riders go behind the values that they are made from, which moves later nodes.
  void insert_signs() {
    Problem& problem = added_.problem;
    std::vector<NodeId> now;
    NodeId next = 0;
    for (const Signs& signs : signs_) {
      now.push_back(next);
      next += signs.bytes > 0 ? 2 : 1;
    }
    const auto move = [&](NodeId& id) {
      if (id != kNoNode) id = now[id];
    };
    std::vector<Node> nodes;
    for (NodeId i = 0; i < problem.size(); ++i) {
      Node& moved = problem.nodes[i];
      move(moved.rider_of);
      for (NodeId& id : moved.after) move(id);
      for (Variant& variant : moved.variants) {
        for (NodeId& id : variant.inputs) move(id);
        move(variant.overwrites);
      }
      const bool once = moved.once;
      const std::string name = moved.name + ".signs";
      nodes.push_back(std::move(moved));
      const Signs& signs = signs_[i];
      if (signs.bytes == 0) continue;
      Node rider;
      rider.name = name;
      rider.bytes = signs.bytes;
      rider.once = once;
      rider.rider_of = now[i];
      rider.variants.emplace_back().time = signs.time;
      nodes.push_back(std::move(rider));
    }
    for (size_t y = 0; y < signs_.size(); ++y) {
      for (const auto& [reader, v] : signs_[y].readers) {
        std::vector<NodeId>& inputs = nodes[now[reader]].variants[v].inputs;
        inputs.insert(std::upper_bound(inputs.begin(), inputs.end(), now[y]), now[y] + 1);
      }
    }
    problem.nodes = std::move(nodes);
  }

  const StepTrace& trace_;
  const StepProblem& step_;
  SameBitVariants added_;
  std::vector<Signs> signs_;  // by node
};

}  // namespace

SameBitVariants add_same_bit_variants(const StepTrace& trace, const StepProblem& step) {
  return VariantAdder(trace, step).run();
}

}  // namespace tidemark::planner::remat
