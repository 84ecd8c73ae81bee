#include "runtime/schedule/step_trace.h"

#include <algorithm>

#include "runtime/core/hash.h"

namespace tidemark {
namespace {

bool same_op(const StepTrace::Op& a, const StepTrace::Op& b) {
  return a.kind == b.kind && a.name == b.name && a.signature == b.signature &&
         a.inputs == b.inputs && a.outputs == b.outputs && a.released == b.released &&
         a.may_overwrite == b.may_overwrite && a.workspace == b.workspace;
}

bool same_storage(const StepTrace::Storage& a, const StepTrace::Storage& b) {
  return a.origin == b.origin && a.category == b.category && a.size == b.size &&
         a.at_start == b.at_start && a.at_end == b.at_end && a.may_evict == b.may_evict &&
         a.may_offload == b.may_offload;
}

class Verifier {
 public:
  Verifier(const StepTrace& trace, size_t limit)
      : trace_(trace), limit_(limit), state_(trace.storages.size()) {}

  std::vector<std::string> run() {
    for (size_t s = 0; s < trace_.storages.size(); ++s) {
      const StepTrace::Storage& storage = trace_.storages[s];
      const int64_t size = storage.size.count();
      if (size < 0 || size > kTooManyBytes)
        say("storage " + std::to_string(s) + " has an impossible size");
      state_[s].there = storage.at_start;
    }
    for (op_ = 0; op_ < trace_.ops.size(); ++op_) check(trace_.ops[op_]);
    for (size_t s = 0; s < state_.size(); ++s) {
      if (trace_.storages[s].at_end != state_[s].there) {
        say("storage " + std::to_string(s) +
            (state_[s].there ? " is never released but is not live at the end"
                             : " should be live at the end but is not"));
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

  // What a call runs, itself or a variant. `dropped`: inputs may have been dropped before.
  void check(const StepTrace::Op& op, const StepTrace::Implementation& it, bool dropped) {
    if (it.workspace < Bytes(0) || it.workspace.count() > kTooManyBytes) {
      say_here("its workspace has an impossible size");
    }
    if (it.cost < Nanos(0)) say_here("it has a negative cost");
    for (const StepTrace::Input& input : it.inputs) {
      State* state = find(input.storage);
      if (!state) continue;
      const std::string name = "storage " + std::to_string(input.storage);
      if (!state->there && !(dropped && state->made)) say_here(name + " is not live");
      if (state->version != input.version)
        say_here(name + " has another version at that point");
    }
    for (const uint32_t storage : it.may_overwrite) {
      const auto is_read = [&](const StepTrace::Input& input) {
        return input.storage == storage && !input.written;
      };
      if (op.outputs.empty() || std::none_of(it.inputs.begin(), it.inputs.end(), is_read)) {
        say_here("no output can overwrite storage " + std::to_string(storage));
      }
    }
  }

  void check_variants(const StepTrace::Op& op) {
    const auto writes = [](const StepTrace::Input& input) { return input.written; };
    for (uint32_t v = 1; v <= op.variants.size(); ++v) {
      const StepTrace::Implementation it = op.implementation(v);
      check(op, it, /*dropped=*/true);
      if (op.kind != StepTrace::Kind::kCall ||
          std::any_of(op.inputs.begin(), op.inputs.end(), writes) ||
          std::any_of(it.inputs.begin(), it.inputs.end(), writes)) {
        say_here("only a call that writes nothing in place has variants");
      }
    }
  }

  void check(const StepTrace::Op& op) {
    check(op, op.implementation(0), /*dropped=*/false);
    check_variants(op);
    for (const StepTrace::Input& input : op.inputs) {
      if (input.written && input.storage < state_.size()) ++state_[input.storage].version;
    }
    for (const uint32_t output : op.outputs) {
      State* state = find(output);
      if (!state) continue;
      if (state->there || state->made) {
        say_here("storage " + std::to_string(output) + " is produced twice");
      }
      state->there = state->made = true;
    }
    for (const uint32_t released : op.released) {
      State* state = find(released);
      if (!state) continue;
      if (!state->there) {
        say_here("storage " + std::to_string(released) + " is released but was not live");
      }
      state->there = false;
    }
  }

  const StepTrace& trace_;
  const size_t limit_;
  std::vector<State> state_;
  std::vector<std::string> found_;
  size_t op_ = 0;
};

}  // namespace

bool same_program(const StepTrace& a, const StepTrace& b) {
  return std::equal(a.storages.begin(), a.storages.end(), b.storages.begin(), b.storages.end(),
                    same_storage) &&
         std::equal(a.ops.begin(), a.ops.end(), b.ops.begin(), b.ops.end(), same_op);
}

uint64_t signature_of(const StepTrace& trace) {
  WordHash hash;
  const auto add_inputs = [&](const std::vector<StepTrace::Input>& inputs) {
    hash.add(inputs.size());
    for (const StepTrace::Input& input : inputs) {
      hash.add(input.storage);
      hash.add(input.version);
      hash.add(input.written ? 1 : 0);
    }
  };
  const auto add_list = [&](const std::vector<uint32_t>& list) {
    hash.add(list.size());
    for (const uint32_t storage : list) hash.add(storage);
  };
  for (const StepTrace::Storage& s : trace.storages) {
    hash.add(s.origin);
    hash.add(to_string(s.category));
    hash.add(static_cast<uint64_t>(s.size.count()));
    hash.add((s.at_start ? 1U : 0U) | (s.at_end ? 2U : 0U) | (s.may_evict ? 0U : 4U) |
             (s.may_offload ? 0U : 8U));
  }
  for (const StepTrace::Op& op : trace.ops) {
    hash.add(static_cast<uint64_t>(op.kind));
    hash.add(op.name);
    hash.add(op.signature);
    hash.add(static_cast<uint64_t>(op.workspace.count()));
    add_inputs(op.inputs);
    for (const auto* list : {&op.outputs, &op.may_overwrite, &op.released}) add_list(*list);
  }
  return hash.value();
}

std::vector<std::string> trace_violations(const StepTrace& trace, size_t limit) {
  return Verifier(trace, limit).run();
}

std::string why_not_plannable(const StepTrace& trace) {
  if (trace.ops.empty()) return "it has no operators";
  for (size_t s = 0; s < trace.storages.size(); ++s) {
    const StepTrace::Storage& storage = trace.storages[s];
    if (storage.at_start == storage.at_end) continue;
    return "storage " + std::to_string(s) + " (" + std::string(storage.label()) + ", " +
           std::string(to_string(storage.category)) + ")" +
           (storage.at_start ? " comes from an earlier step and is released in this one"
                             : " is produced in this step and outlives it");
  }
  return {};
}

std::vector<Life> liveness(const StepTrace& trace) {
  const auto last = static_cast<uint32_t>(trace.ops.empty() ? 0 : trace.ops.size() - 1);
  std::vector<Life> lives(trace.storages.size(), {0, last});
  for (uint32_t k = 0; k < trace.ops.size(); ++k) {
    for (const uint32_t output : trace.ops[k].outputs) lives[output].first = k;
    for (const uint32_t released : trace.ops[k].released) lives[released].last = k;
  }
  return lives;
}

Nanos total_cost(const StepTrace& trace) {
  Nanos sum{0};
  for (const StepTrace::Op& op : trace.ops) sum += op.cost;
  return sum;
}

Bytes program_order_peak(const StepTrace& trace) {
  std::vector<Bytes> change(trace.ops.size() + 1, Bytes(0));
  const std::vector<Life> lives = liveness(trace);
  for (size_t s = 0; s < lives.size(); ++s) {
    change[lives[s].first] += trace.storages[s].size;
    change[lives[s].last + 1] -= trace.storages[s].size;
  }
  Bytes live{0}, peak{0};
  for (size_t k = 0; k < trace.ops.size(); ++k) {
    live += change[k];
    peak = std::max(peak, live + align_up(trace.ops[k].workspace));
  }
  return peak;
}

}  // namespace tidemark
