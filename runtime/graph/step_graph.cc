#include "runtime/graph/step_graph.h"

#include <algorithm>

namespace tidemark {
namespace {

constexpr int64_t kHuge = int64_t{1} << 60;

bool same_op(const StepGraph::Op& a, const StepGraph::Op& b) {
  return a.kind == b.kind && a.name == b.name && a.signature == b.signature &&
         a.inputs == b.inputs && a.outputs == b.outputs && a.released == b.released &&
         a.may_overwrite == b.may_overwrite && a.workspace == b.workspace;
}

bool same_storage(const StepGraph::Storage& a, const StepGraph::Storage& b) {
  return a.origin == b.origin && a.category == b.category && a.size == b.size &&
         a.at_start == b.at_start && a.at_end == b.at_end;
}

// FNV-1a over 64-bit words.
class Hash {
 public:
  void add(uint64_t word) { value_ = (value_ ^ word) * 0x100000001b3; }
  void add(const std::string& text) {
    add(text.size());
    for (const char c : text) add(static_cast<uint64_t>(static_cast<unsigned char>(c)));
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325;
};

class Verifier {
 public:
  Verifier(const StepGraph& graph, size_t limit)
      : graph_(graph), limit_(limit), state_(graph.storages.size()) {}

  std::vector<std::string> run() {
    for (size_t s = 0; s < graph_.storages.size(); ++s) {
      const StepGraph::Storage& storage = graph_.storages[s];
      const int64_t size = storage.size.count();
      if (size < 0 || size > kHuge)
        say("storage " + std::to_string(s) + " has an impossible size");
      state_[s].there = storage.at_start;
    }
    for (op_ = 0; op_ < graph_.ops.size(); ++op_) check(graph_.ops[op_]);
    for (size_t s = 0; s < state_.size(); ++s) {
      if (graph_.storages[s].at_end != state_[s].there) {
        say("storage " + std::to_string(s) +
            (state_[s].there ? " is never let go of and yet not there at the end"
                             : " is not there at the end, as it should be"));
      }
    }
    return std::move(found_);
  }

 private:
  struct State {
    bool there = false;
    bool made = false;
    uint32_t version = 0;
  };

  void say(std::string what) {
    if (found_.size() < limit_) found_.push_back(std::move(what));
  }
  void say_here(const std::string& what) { say("op " + std::to_string(op_) + ": " + what); }
  State* find(uint32_t storage) {
    if (storage < state_.size()) return &state_[storage];
    say_here("there is no storage " + std::to_string(storage));
    return nullptr;
  }

  void check(const StepGraph::Op& op) {
    if (op.workspace < Bytes(0) || op.workspace.count() > kHuge) {
      say_here("its workspace has an impossible size");
    }
    if (op.cost < Nanos(0)) say_here("it takes negative time");
    for (const StepGraph::Input& input : op.inputs) {
      State* state = find(input.storage);
      if (!state) continue;
      const std::string name = "storage " + std::to_string(input.storage);
      if (!state->there) say_here(name + " is not there");
      if (state->version != input.version) say_here(name + " has another version by then");
    }
    for (const StepGraph::Input& input : op.inputs) {
      if (input.written && input.storage < state_.size()) ++state_[input.storage].version;
    }
    for (const uint32_t output : op.outputs) {
      State* state = find(output);
      if (!state) continue;
      if (state->there || state->made) {
        say_here("storage " + std::to_string(output) + " is made twice");
      }
      state->there = state->made = true;
    }
    for (const uint32_t storage : op.may_overwrite) {
      const auto is_read = [&](const StepGraph::Input& input) {
        return input.storage == storage && !input.written;
      };
      if (op.outputs.empty() || std::none_of(op.inputs.begin(), op.inputs.end(), is_read)) {
        say_here("nothing can be put where storage " + std::to_string(storage) + " lies");
      }
    }
    for (const uint32_t released : op.released) {
      State* state = find(released);
      if (!state) continue;
      if (!state->there) {
        say_here("storage " + std::to_string(released) + " is let go of and was not there");
      }
      state->there = false;
    }
  }

  const StepGraph& graph_;
  const size_t limit_;
  std::vector<State> state_;
  std::vector<std::string> found_;
  size_t op_ = 0;
};

}  // namespace

bool same_program(const StepGraph& a, const StepGraph& b) {
  return std::equal(a.storages.begin(), a.storages.end(), b.storages.begin(), b.storages.end(),
                    same_storage) &&
         std::equal(a.ops.begin(), a.ops.end(), b.ops.begin(), b.ops.end(), same_op);
}

uint64_t signature_of(const StepGraph& graph) {
  Hash hash;
  for (const StepGraph::Storage& s : graph.storages) {
    hash.add(s.origin);
    hash.add(s.category);
    hash.add(static_cast<uint64_t>(s.size.count()));
    hash.add((s.at_start ? 1U : 0U) | (s.at_end ? 2U : 0U));
  }
  for (const StepGraph::Op& op : graph.ops) {
    hash.add(static_cast<uint64_t>(op.kind));
    hash.add(op.name);
    hash.add(op.signature);
    hash.add(static_cast<uint64_t>(op.workspace.count()));
    hash.add(op.inputs.size());
    for (const StepGraph::Input& input : op.inputs) {
      hash.add(input.storage);
      hash.add(input.version);
      hash.add(input.written ? 1 : 0);
    }
    for (const auto* list : {&op.outputs, &op.may_overwrite, &op.released}) {
      hash.add(list->size());
      for (const uint32_t storage : *list) hash.add(storage);
    }
  }
  return hash.value();
}

std::vector<std::string> graph_violations(const StepGraph& graph, size_t limit) {
  return Verifier(graph, limit).run();
}

std::string why_not_plannable(const StepGraph& graph) {
  if (graph.ops.empty()) return "it runs nothing";
  for (size_t s = 0; s < graph.storages.size(); ++s) {
    const StepGraph::Storage& storage = graph.storages[s];
    if (storage.at_start == storage.at_end) continue;
    return "storage " + std::to_string(s) + " (" + storage.label() + ", " + storage.category +
           ")" +
           (storage.at_start ? " comes from an earlier step and goes in this one"
                             : " is made in this step and stays after it");
  }
  return {};
}

std::vector<Life> liveness(const StepGraph& graph) {
  const auto last = static_cast<uint32_t>(graph.ops.empty() ? 0 : graph.ops.size() - 1);
  std::vector<Life> lives(graph.storages.size(), {0, last});
  for (uint32_t k = 0; k < graph.ops.size(); ++k) {
    for (const uint32_t output : graph.ops[k].outputs) lives[output].first = k;
    for (const uint32_t released : graph.ops[k].released) lives[released].last = k;
  }
  return lives;
}

Bytes program_order_peak(const StepGraph& graph) {
  std::vector<Bytes> change(graph.ops.size() + 1, Bytes(0));
  const std::vector<Life> lives = liveness(graph);
  for (size_t s = 0; s < lives.size(); ++s) {
    change[lives[s].first] += graph.storages[s].size;
    change[lives[s].last + 1] -= graph.storages[s].size;
  }
  Bytes live{0}, peak{0};
  for (size_t k = 0; k < graph.ops.size(); ++k) {
    live += change[k];
    peak = std::max(peak, live + align_up(graph.ops[k].workspace));
  }
  return peak;
}

}  // namespace tidemark
