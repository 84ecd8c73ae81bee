#include "runtime/planner/remat/problem_from_step.h"

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/schedule/step_table.h"

namespace tidemark::planner::remat {
namespace {

using Ids = std::vector<NodeId>;

void sort_out(Ids& ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

class StepConverter {
 public:
  StepConverter(const StepTrace& trace, const StepProblemOptions& options)
      : trace_(trace),
        options_(options),
        holder_(trace.storages.size(), kNoNode),
        users_(trace.storages.size()),
        last_reader_(trace.storages.size()),
        dropped_(trace.storages.size()) {}

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
    for (NodeId i = 0; i < problem.size(); ++i) {
      Node& node = problem.nodes[i];
      node.required |= is_read_[i] == 0 && node.rider_of == kNoNode;
      node.once |= !options_.recompute;
      problem.base_time += node.variants[0].time;
    }
    return std::move(result_);
  }

 private:
  struct Outputs {
    std::vector<uint32_t> own, apart;  // of the node's value, and of a rider's
  };

  int64_t bytes(uint32_t storage) const { return trace_.storages[storage].size.count(); }
  int64_t bytes(const std::vector<uint32_t>& storages) const {
    int64_t sum = 0;
    for (const uint32_t s : storages) sum += bytes(s);
    return sum;
  }
  NodeId next() const { return result_.problem.size(); }

  // Whether the storage is all of its node's value.
  bool is_alone(uint32_t storage) const {
    return holder_[storage] != kNoNode &&
           result_.value[holder_[storage]] == std::vector<uint32_t>{storage};
  }

  void add(Node node, uint32_t op, std::vector<uint32_t> value,
           std::vector<uint32_t> variants = {0}) {
    for (Variant& variant : node.variants) sort_out(variant.inputs);
    sort_out(node.after);
    for (const NodeId u : node.variants[0].inputs) {
      const auto reads = [u](const Variant& variant) {
        return std::binary_search(variant.inputs.begin(), variant.inputs.end(), u);
      };
      if (std::all_of(node.variants.begin(), node.variants.end(), reads)) note_read(u);
    }
    result_.variant_of.push_back(std::move(variants));
    for (const uint32_t s : value) holder_[s] = next();
    result_.problem.nodes.push_back(std::move(node));
    result_.op_of.push_back(op);
    result_.value.push_back(std::move(value));
    is_read_.push_back(0);
  }
  void note_read(NodeId u) {
    is_read_[u] = 1;
    const NodeId parent = result_.problem.nodes[u].rider_of;
    if (parent != kNoNode) is_read_[parent] = 1;
  }

  void convert(uint32_t k) {
    const StepTrace::Op& op = trace_.ops[k];
    if (op.kind == StepTrace::Kind::kUpload) {
      result_.problem.fixed_bytes += bytes(op.outputs);
      return;
    }
    Node node;
    node.name = std::string(op.name) + "." + std::to_string(k);
    Variant variant = run_of(op.implementation(0));
    std::vector<uint32_t> made, lasting;
    for (const uint32_t s : op.outputs) {
      node.once |= !trace_.storages[s].may_evict;
      (trace_.storages[s].at_end ? lasting : made).push_back(s);
    }
    node.adds_fixed = bytes(lasting);
    std::vector<uint32_t> written;
    for (const StepTrace::Input& input : op.inputs) {
      if (input.written) written.push_back(input.storage);
    }
    for (const uint32_t s : written) {
      node.after.insert(node.after.end(), users_[s].begin(), users_[s].end());
      if (holder_[s] == kNoNode || trace_.storages[s].at_start || trace_.storages[s].at_end) {
        continue;  // its bytes are fixed already
      }
      made.push_back(s);
      if (is_alone(s) && variant.overwrites == kNoNode) {
        variant.overwrites = holder_[s];
        variant.workspace -= bytes(s);
      }
    }
    node.once |= !written.empty() || !lasting.empty() || op.kind == StepTrace::Kind::kRead;
    node.required = node.once;
    keep_order(op, node);

    const bool once = node.once;
    Outputs outputs = split_off(std::move(made));
    node.bytes = bytes(outputs.own);
    variant.workspace += bytes(outputs.apart);
    node.variants.push_back(variant);
    std::vector<uint32_t> variant_of{0};
    if (options_.in_place) offer_in_place(k, node, variant_of);
    const NodeId id = next();
    if (options_.variants) offer_variants(k, bytes(outputs.apart), node, variant_of);
    add(std::move(node), k, std::move(outputs.own), std::move(variant_of));
    // Later readers of these depend on the node, which runs once.
    for (const auto* storages : {&lasting, &written}) {
      for (const uint32_t s : *storages) holder_[s] = id;
    }
    for (uint32_t v = 0; v <= op.variants.size(); ++v) {
      for (const StepTrace::Input& input : op.implementation(v).inputs)
        users_[input.storage].push_back(id);
    }
    for (const uint32_t s : op.released) dropped_[s] = 1;
    for (const uint32_t s : op.outputs) users_[s] = {id};
    for (const uint32_t s : written) users_[s] = {id};
    if (outputs.apart.empty()) return;
    Node rider;
    rider.name = std::string(op.name) + "." + std::to_string(k) + ".more";
    rider.bytes = bytes(outputs.apart);
    rider.once = once;
    rider.rider_of = id;
    rider.variants.emplace_back();
    add(std::move(rider), k, std::move(outputs.apart));
  }

  // Whether it reads what a node after the last read makes.
  bool follows(const StepTrace::Implementation& it) const {
    return std::any_of(it.inputs.begin(), it.inputs.end(), [&](const StepTrace::Input& input) {
      return holder_[input.storage] >= barrier_;
    });
  }

  // A read comes after what ends a chain of nodes before it, as after all that the chain needs;
  // what may begin a chain behind it comes after the read.
  void keep_order(const StepTrace::Op& op, Node& node) {
    if (op.kind != StepTrace::Kind::kRead) {
      for (uint32_t v = 0; v <= op.variants.size() && barrier_ != kNoNode; ++v) {
        if (!follows(op.implementation(v))) node.after.push_back(barrier_);
      }
      return;
    }
    for (NodeId i = std::max(barrier_, 0); i < next(); ++i) {
      const Node& before = result_.problem.nodes[i];
      if (before.rider_of == kNoNode && (before.once || is_read_[i] == 0)) {
        node.after.push_back(i);
      }
    }
    barrier_ = next();
  }

  // Sets apart, from the largest output, those whose last reader is not the largest one's.
  Outputs split_off(std::vector<uint32_t> made) const {
    std::sort(made.begin(), made.end(), [&](uint32_t a, uint32_t b) {
      return std::pair(bytes(b), a) < std::pair(bytes(a), b);
    });
    Outputs outputs;
    for (const uint32_t s : made) {
      const bool together = !options_.riders || last_reader_[s] == last_reader_[made[0]];
      (together ? outputs.own : outputs.apart).push_back(s);
    }
    return outputs;
  }

  Variant run_of(const StepTrace::Implementation& it) const {
    Variant run;
    run.time = static_cast<double>(it.cost.count()) * 1e-6;
    if (options_.workspace) run.workspace = it.workspace.count();
    for (const StepTrace::Input& input : it.inputs) {
      if (holder_[input.storage] != kNoNode) run.inputs.push_back(holder_[input.storage]);
    }
    return run;
  }

  // The node's last variant in place of an input, if it has one that dies. `variant_of`: as
  // StepProblem::variant_of[node].
  void offer_in_place(uint32_t k, Node& node, std::vector<uint32_t>& variant_of) const {
    const Variant& plain = node.variants.back();
    if (plain.overwrites != kNoNode) return;
    for (const uint32_t s : trace_.ops[k].implementation(variant_of.back()).may_overwrite) {
      if (!is_alone(s) || trace_.storages[s].at_end || !dies_in_place(trace_, k, s)) continue;
      Variant variant = plain;
      variant.name += variant.name.empty() ? "in place" : ", in place";
      variant.overwrites = holder_[s];
      variant.workspace -= bytes(s);
      variant.when = When::kFirst;
      node.variants.push_back(variant);
      variant_of.push_back(variant_of.back());
      return;
    }
  }

  // `apart`: the bytes of its outputs that are not of the node's value.
  void offer_variants(uint32_t k, int64_t apart, Node& node,
                      std::vector<uint32_t>& variant_of) const {
    const StepTrace::Op& op = trace_.ops[k];
    const auto is_there = [this](const StepTrace::Input& input) {
      return holder_[input.storage] != kNoNode || dropped_[input.storage] == 0;
    };
    for (uint32_t v = 1; v <= op.variants.size(); ++v) {
      const StepTrace::Implementation it = op.implementation(v);
      if (!std::all_of(it.inputs.begin(), it.inputs.end(), is_there)) continue;
      Variant variant = run_of(it);
      variant.name = op.variants[v - 1].name;
      variant.workspace += apart;
      variant.when = When::kFirst;
      node.variants.push_back(std::move(variant));
      variant_of.push_back(v);
      if (options_.in_place) offer_in_place(k, node, variant_of);
    }
  }

  const StepTrace& trace_;
  const StepProblemOptions options_;
  StepProblem result_;
  Ids holder_;                 // by storage: the node whose value holds it
  std::vector<Ids> users_;     // by storage: what made or wrote it last, and has read it since
  std::vector<char> is_read_;  // by node: another always reads its value, or its rider's
  std::vector<size_t> last_reader_;
  std::vector<char> dropped_;  // by storage: by the program
  NodeId barrier_ = kNoNode;   // the last read
};

}  // namespace

StepProblem problem_from_step(const StepTrace& trace, const StepProblemOptions& options) {
  return StepConverter(trace, options).run();
}

}  // namespace tidemark::planner::remat
