// A problem as the search sees it. Variants of a node with the same inputs, overwritten value
// and riders differ in time and workspace only. Together they are one option, and its variant
// follows from the memory at the run: the fastest that fits. Variants that work in place belong
// to the same option as those that do not; they are possible where the value that they
// overwrite has no later use. The search therefore chooses options; a joint change of several
// variants takes no moves of its own.
//
//   option "conv1 from x":   need   time        slack 30 MiB -> variant 2
//                            16     9.0  (v0)   slack 70 MiB -> variant 1
//                            20     7.5  (v2)   slack 10 MiB -> does not fit, short of 6 MiB
//                            68     6.0  (v1)
//
// Threads: immutable once made. The Problem must outlive it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/planner/remat/remat_schedule.h"

namespace tidemark::planner::remat {

using OptionId = int32_t;
inline constexpr OptionId kNoOption = -1;

// A way to run an option. `need`: its value and workspace, in bytes.
struct Choice {
  int64_t need = 0;
  double time = 0;
  int32_t variant = 0;
};

// Which values a run may overwrite because nothing needs them later.
enum Place : uint8_t {
  kNotInPlace,
  kOverFirst,   // may_overwrite(o, 0)
  kOverSecond,  // may_overwrite(o, 1)
  kAnyPlace,    // whichever variant is best: for estimates
};

class Options {
 public:
  // A variant is left out if it needs more than `budget` whatever else is dropped.
  Options(const Problem& problem, int64_t budget);
  Options(Problem&&, int64_t) = delete;  // it would not outlive this

  const Problem& problem() const { return problem_; }
  int64_t budget() const { return budget_; }
  OptionId size() const { return static_cast<OptionId>(options_.size()); }
  std::span<const OptionId> of_node(NodeId i) const {
    return {by_node_.data() + node_begin_[i], by_node_.data() + node_begin_[i + 1]};
  }

  NodeId node(OptionId o) const { return options_[o].node; }
  // What all variants overwrite, so that it must not be needed later; kNoNode: nothing.
  NodeId overwrites(OptionId o) const { return options_[o].overwrites; }
  // An input that some variants overwrite, for spot 0 and 1; kNoNode: there is none.
  NodeId may_overwrite(OptionId o, int spot) const { return options_[o].may_overwrite[spot]; }
  NodeId rider_of(OptionId o) const { return options_[o].rider_of; }
  std::span<const NodeId> inputs(OptionId o) const {
    return {inputs_.data() + options_[o].inputs_begin, inputs_.data() + options_[o].inputs_end};
  }
  // By rising need and falling time, in place or not; empty if no variant may be the node's
  // first (a later) run.
  std::span<const Choice> choices(OptionId o, bool again, Place place = kAnyPlace) const {
    const Range range = options_[o].choices[again][place];
    return {choices_.data() + range.begin, choices_.data() + range.end};
  }
  // The fastest that fits in `slack` bytes; if none, the smallest. Null if there are no
  // choices.
  const Choice* pick(OptionId o, bool again, Place place, int64_t slack) const {
    const Range range = options_[o].choices[again][place];
    if (range.begin == range.end) return nullptr;
    const Choice* const first = choices_.data() + range.begin;
    const Choice* best = choices_.data() + range.end;
    do --best;
    while (best != first && best->need > slack);
    return best;
  }
  // Whether a rider's option may follow a run of `parent`.
  bool goes_with(OptionId rider, OptionId parent) const;

  int64_t bytes(NodeId i) const { return bytes_[i]; }
  int64_t adds_fixed(NodeId i) const { return adds_fixed_[i]; }
  bool must_run(NodeId i) const { return must_run_[i] != 0; }
  bool once(NodeId i) const { return once_[i] != 0; }
  // The nodes that do not run any more once this one has.
  std::span<const NodeId> after(NodeId i) const { return problem_.nodes[i].after; }
  bool has_after() const { return has_after_; }  // of any node

 private:
  struct Range {
    int32_t begin = 0, end = 0;
  };
  struct Option {
    NodeId node = kNoNode, overwrites = kNoNode, rider_of = kNoNode;
    NodeId may_overwrite[2] = {kNoNode, kNoNode};
    int32_t inputs_begin = 0, inputs_end = 0;
    Range choices[2][4] = {};  // first or again; by Place
  };
  void add_options(NodeId i, const std::vector<int32_t>& variants);
  void add_option(NodeId i, const std::vector<int32_t>& variants, Option option);
  Range add_choices(const Node& node, const std::vector<int32_t>& variants, bool again,
                    const std::vector<NodeId>& overwritable);
  void find_parents();

  const Problem& problem_;
  int64_t budget_;
  std::vector<Option> options_;
  std::vector<int64_t> bytes_, adds_fixed_;  // by node
  std::vector<uint8_t> must_run_, once_;     // by node
  bool has_after_ = false;
  std::vector<std::vector<OptionId>> parents_;  // by option, of riders; ascending
  std::vector<NodeId> inputs_;
  std::vector<Choice> choices_;
  std::vector<int32_t> variant_of_;  // by option: one of its variants
  std::vector<OptionId> by_node_;
  std::vector<int32_t> node_begin_;
};

}  // namespace tidemark::planner::remat
