#include "runtime/planner/roam/subgraph_tree.h"

#include <algorithm>

namespace tidemark::planner::roam {
namespace {

class TreeMaker {
 public:
  TreeMaker(const OrderGraph& graph, const Phases& phases, const TreeOptions& options)
      : phases_(phases),
        node_limit_(options.node_limit),
        updates_(options.updates),
        merge_(options.merge),
        segments_(phases.segments()) {
    ops_before_.assign(segments_ + 1, 0);
    for (size_t i = 0; i < graph.size(); ++i) {
      if (updates_ || !phases.floats[i]) ++ops_before_[phases.segment[i] + 1];
    }
    for (int s = 0; s < segments_; ++s) ops_before_[s + 1] += ops_before_[s];
    find_reaches(graph);
  }

  SubgraphTree run() {
    const int turn = phases_.turn;
    add(-1, {0, turn, turn, segments_, {}});
    Reach reach{segments_, -1};
    int first = turn, last = turn - 1;  // segments [first, last] are in subgraphs
    while (first > 0) {
      const int inner_first = first, inner_last = last;
      --first;
      for (bool grows = true; grows;) {
        grows = false;
        for (int s = inner_first - 1; s >= first; --s) reach.add(inside(s, s > first));
        for (int s = inner_last + 1; s <= last; ++s) reach.add(inside(s, true));
        if (inner_first < segments_) reach.add(edge_[inner_first]);
        if (reach.last > last) last = reach.last, grows = true;
        if (reach.first < first) first = reach.first, grows = true;
        // Beyond one end of the step, no operator could be a boundary.
        if (turn < segments_ && (first == 0 || last == segments_ - 1)) {
          first = 0, last = segments_ - 1;
        }
      }
      const SubgraphNode found{first, inner_first, inner_last + 1, last + 1, {}};
      if (merge_ && merge(found)) continue;
      const int node = add(0, found);
      if (ops(found) > node_limit_) split(node);
    }
    std::vector<int> stack{0};
    while (!stack.empty()) {
      const SubgraphNode& node = tree_.nodes[stack.back()];
      if (node.children.empty()) tree_.leaves.push_back(stack.back());
      stack.pop_back();
      stack.insert(stack.end(), node.children.rbegin(), node.children.rend());
    }
    return std::move(tree_);
  }

 private:
  // The first and the last segment that use the values at hand.
  struct Reach {
    int first, last;
    void add(const Reach& other) {
      first = std::min(first, other.first);
      last = std::max(last, other.last);
    }
  };

  void find_reaches(const OrderGraph& graph) {
    inner_.assign(segments_, {segments_, -1});
    edge_.assign(segments_, {segments_, -1});
    for (const OrderGraph::Value& value : graph.values) {
      Reach reach{segments_, -1};
      bool more_than_boundary = false;
      for (const OpId op : value.touchers) {
        if (is_apart(op)) continue;
        const int s = phases_.segment[op];
        if (s > reach.last) more_than_boundary = false;
        if (s >= reach.last && !phases_.is_insensitive(op)) more_than_boundary = true;
        reach.add({s, s});
      }
      // The next boundary operator may use the value too.
      if (!more_than_boundary && reach.last > reach.first) --reach.last;
      for (const OpId op : value.touchers) {
        if (is_apart(op)) continue;
        (phases_.is_insensitive(op) ? edge_ : inner_)[phases_.segment[op]].add(reach);
      }
    }
  }
  // The values that such an operator uses do not join segments.
  bool is_apart(OpId op) const {
    return (phases_.floats[op] && !updates_) || phases_.epilogue[op];
  }

  Reach inside(int segment, bool with_boundary) const {
    Reach reach = inner_[segment];
    if (with_boundary) reach.add(edge_[segment]);
    return reach;
  }

  int ops(int begin, int end) const {
    return end > begin ? ops_before_[end] - ops_before_[begin] : 0;
  }

  int ops(const SubgraphNode& node) const {
    return ops(node.forward_begin, node.forward_end) +
           ops(node.backward_begin, node.backward_end);
  }

  // Merges the node into the subgraph within, if both are small.
  bool merge(const SubgraphNode& node) {
    const std::vector<int>& children = tree_.nodes.front().children;
    if (children.empty()) return false;
    SubgraphNode& inner = tree_.nodes[children.back()];
    if (!inner.children.empty() || ops(inner) + ops(node) > node_limit_) return false;
    inner.forward_begin = node.forward_begin;
    inner.backward_end = node.backward_end;
    return true;
  }

  int add(int parent, SubgraphNode node) {
    const int id = static_cast<int>(tree_.nodes.size());
    tree_.nodes.push_back(std::move(node));
    if (parent >= 0) tree_.nodes[parent].children.push_back(id);
    return id;
  }

  // Splits from the inside out. Each piece takes the part of the backward pass that belongs to
  // its forward part.
  void split(int id) {
    const SubgraphNode whole = tree_.nodes[id];
    SubgraphNode piece{
        whole.forward_end, whole.forward_end, whole.backward_begin, whole.backward_begin, {}};
    std::vector<SubgraphNode> pieces;
    const auto close = [&] {
      if (piece.forward_begin == piece.forward_end &&
          piece.backward_begin == piece.backward_end)
        return;
      pieces.push_back(piece);
      piece.forward_end = piece.forward_begin;
      piece.backward_begin = piece.backward_end;
    };
    const auto too_many = [&](int forward_begin, int backward_end) {
      return ops(forward_begin, piece.forward_end) + ops(piece.backward_begin, backward_end) >
             node_limit_;
    };
    Reach reach{segments_, -1};
    for (int s = whole.forward_end - 1; s >= whole.forward_begin; --s) {
      reach.add(inner_[s]);
      if (s + 1 < whole.forward_end) reach.add(edge_[s + 1]);
      const int end = std::clamp(reach.last + 1, piece.backward_end, whole.backward_end);
      if (too_many(s, end)) close();
      piece.forward_begin = s;
      // A long part of the backward pass is cut too.
      for (int b = piece.backward_end; b < end; ++b) {
        if (too_many(s, b + 1)) close();
        piece.backward_end = b + 1;
      }
    }
    for (int b = piece.backward_end; b < whole.backward_end; ++b) {
      if (too_many(piece.forward_begin, b + 1)) close();
      piece.backward_end = b + 1;
    }
    close();
    if (pieces.size() < 2) return;
    for (SubgraphNode& dependent : pieces) add(id, std::move(dependent));
  }

  const Phases& phases_;
  const int node_limit_;
  const bool updates_, merge_;
  const int segments_;
  std::vector<int> ops_before_;      // per segment: operators in those before it
  std::vector<Reach> inner_, edge_;  // per segment: by others, by its insensitive operator
  SubgraphTree tree_;
};

}  // namespace

SubgraphTree make_subgraph_tree(const OrderGraph& graph, const Phases& phases,
                                const TreeOptions& options) {
  return TreeMaker(graph, phases, options).run();
}

}  // namespace tidemark::planner::roam
