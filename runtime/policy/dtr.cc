// Dynamic Tensor Rematerialization (Kirisame et al., 2021): h_DTR(t) = c(t) / (m(t) s(t)),
// Section 4.1, where c(t) is the cost of t and of its evicted neighbourhood e*(t): what would
// have to be recomputed for t, and what would need t recomputed.
//
// e* is approximated as there (Appendix C.2, ~e*): evicted storages that are neighbours form
// components with a running sum of costs. Evicting joins components; bringing back takes a
// storage's own cost off its component, which is never split.
#include <algorithm>
#include <unordered_map>
#include <vector>

#include "runtime/policy/indexed_policy.h"
#include "runtime/policy/registry.h"
#include "runtime/tensor/recipe.h"

namespace tidemark {
namespace {

// Union-find with a sum of costs per component.
class Components {
 public:
  size_t make(double cost) {
    parents_.push_back(parents_.size());
    costs_.push_back(cost);
    return parents_.size() - 1;
  }
  size_t find(size_t i) {
    while (parents_[i] != i) i = parents_[i] = parents_[parents_[i]];
    return i;
  }
  void join(size_t a, size_t b) {
    a = find(a);
    b = find(b);
    if (a == b) return;
    parents_[b] = a;
    costs_[a] += costs_[b];
  }
  void take(size_t i, double cost) {
    double& sum = costs_[find(i)];
    sum = std::max(0.0, sum - cost);
  }
  double cost(size_t root) const { return costs_[root]; }
  void clear() {
    parents_.clear();
    costs_.clear();
  }

 private:
  std::vector<size_t> parents_;
  std::vector<double> costs_;
};

class DtrPolicy final : public EvictOnlyPolicy {
 public:
  Storage* choose(const MemoryView& view) override {
    return least([&](Storage& storage) -> std::optional<double> {
      if (!evictable(view, storage)) return std::nullopt;
      const auto bytes = static_cast<double>(storage.size().count());
      const Nanos staleness = std::max(Nanos(1), view.clock() - storage.last_access);
      return neighbourhood_cost(storage) / (bytes * static_cast<double>(staleness.count()));
    });
  }

  // The storage is resident again, if it was evicted.
  void add(Storage& storage) override {
    IndexedPolicy::add(storage);
    const auto found = nodes_.find(&storage);
    if (found == nodes_.end() || !found->second.evicted) return;
    found->second.evicted = false;
    components_.take(found->second.component, found->second.cost);
  }
  void on_event(const StorageEvent& event) noexcept override {
    if (event.kind == StorageEvent::Kind::kIssued) issued(*event.call, event.cost);
    if (loses_bytes(event)) evicted(*event.storage);
    if (event.kind == StorageEvent::Kind::kGone) gone(*event.storage);
  }
  // Components start anew, so that they do not grow from step to step: storages that are
  // evicted at this point have no users.
  void begin_step(const MemoryView& /*view*/) override {
    components_.clear();
    for (auto& [storage, node] : nodes_) {
      node.neighbours.clear();
      if (node.evicted) node.component = components_.make(node.cost);
    }
  }

 private:
  struct Node {
    double cost = 0;  // its call's; 0 without a call
    bool evicted = false;
    size_t component = 0;                    // while evicted
    std::vector<const Storage*> neighbours;  // inputs, and outputs of calls that read it
  };

  void issued(const Recipe& call, Nanos cost) {
    for (const Recipe::Output& output : call.outputs) {
      if (!output.storage) continue;
      nodes_[output.storage].cost = static_cast<double>(cost.count());
      for (const Recipe::Input& input : call.inputs) {
        connect(*output.storage, *input.storage);
      }
    }
  }
  void evicted(const Storage& storage) {
    const auto found = nodes_.find(&storage);
    if (found == nodes_.end() || found->second.evicted) return;
    Node& node = found->second;
    node.evicted = true;
    node.component = components_.make(node.cost);
    for (const Storage* other : node.neighbours) {
      const Node& neighbour = nodes_.at(other);
      if (neighbour.evicted) components_.join(node.component, neighbour.component);
    }
  }
  void gone(const Storage& storage) {
    const auto found = nodes_.find(&storage);
    if (found == nodes_.end()) return;
    if (found->second.evicted) components_.take(found->second.component, found->second.cost);
    for (const Storage* other : found->second.neighbours) {
      std::erase(nodes_.at(other).neighbours, &storage);
    }
    nodes_.erase(found);
  }

  void connect(const Storage& a, const Storage& b) {
    nodes_[&a].neighbours.push_back(&b);
    nodes_[&b].neighbours.push_back(&a);
  }

  double neighbourhood_cost(const Storage& storage) {
    const auto found = nodes_.find(&storage);
    if (found == nodes_.end()) return 0;
    double sum = found->second.cost;
    roots_.clear();
    for (const Storage* other : found->second.neighbours) {
      const Node& neighbour = nodes_.at(other);
      if (!neighbour.evicted) continue;
      const size_t root = components_.find(neighbour.component);
      if (std::find(roots_.begin(), roots_.end(), root) != roots_.end()) continue;
      roots_.push_back(root);
      sum += components_.cost(root);
    }
    return sum;
  }

  std::unordered_map<const Storage*, Node> nodes_;
  Components components_;
  std::vector<size_t> roots_;  // scratch
};

}  // namespace

std::unique_ptr<ReleasePolicy> make_dtr_policy(const PolicySettings& /*settings*/) {
  return std::make_unique<DtrPolicy>();
}

}  // namespace tidemark
