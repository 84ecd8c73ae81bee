// One step as the program issued it: its operators, uploads and reads, and the storages that
// they use. What planners read, and what a later step is matched against.
//
//   op 0  upload            -> s0
//   op 1  conv    s0 s1@0   -> s2       s1 was there before: a parameter
//   op 2  relu    s2        -> s3       after it the program lets go of s2
//   ...
//   op 9  sgd     s1@0! s8              writes s1 in place: from now on it is s1@1
//   op 10 read    s7                    the program waits for a value
//
// Views are of their storage, so there are no aliases here. Storages are numbered as they come
// first: inputs of an operator before its outputs.
//
// Names are text that lives as long as the process (core/names.h), or as `text`.
//
// Threads: values, no state.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/category.h"
#include "runtime/core/units.h"

namespace tidemark {

struct StepTrace {
  enum class Kind : uint8_t { kCall, kUpload, kRead };

  struct Storage {
    std::string_view origin;  // the operator that made it, or "upload"
    Category category = Category::kActivation;
    Bytes size{0};          // as it occupies the arena
    bool at_start = false;  // it was there before the step
    bool at_end = false;    // it is there after it
    bool may_evict = true;  // if it can be computed again
    bool may_offload = true;
    // For people, "layer3.2.conv1.weight"; empty: as its origin. Not compared by
    // same_program().
    std::string_view name{};
    std::string_view label() const { return name.empty() ? origin : name; }
    bool operator==(const Storage&) const = default;
  };
  struct Input {
    uint32_t storage = 0;
    uint32_t version = 0;  // how often the step had written it in place before
    bool written = false;  // in place
    bool operator==(const Input&) const = default;
  };
  struct Op {
    Kind kind = Kind::kCall;
    std::string_view name;  // of the operator
    // Of the call without its operands: operator, attributes, shapes. Hyper-parameters that
    // change from step to step are not in it.
    uint64_t signature = 0;
    std::vector<Input> inputs{};
    std::vector<uint32_t> outputs{};
    // Inputs whose place the first output may take, if nobody needs them any more: each element
    // is read before it is written.
    std::vector<uint32_t> may_overwrite{};
    // The program let go of them after this one was issued, and before the next.
    std::vector<uint32_t> released{};
    Bytes workspace{0};
    Nanos cost{0};
    // For people, "layer3.2.conv1: conv2d"; empty: as the operator. Not compared by
    // same_program().
    std::string_view call{};
    std::string_view label() const { return call.empty() ? name : call; }
    bool operator==(const Op&) const = default;
  };

  std::vector<Op> ops;
  std::vector<Storage> storages;
  std::shared_ptr<const void> text{};  // of names that a file brought; null: of none

  bool operator==(const StepTrace& other) const {
    return ops == other.ops && storages == other.storages;
  }
};

// Can a plan of one be used for the other? Costs may differ, and what people call its parts.
bool same_program(const StepTrace& a, const StepTrace& b);
// Equal for these; differs for others, but for collisions of 64 bits.
uint64_t signature_of(const StepTrace& trace);

// What is wrong with it: ids out of range, a storage used before it is made or after it was
// let go of, one made twice, versions that do not follow the writes, negative or huge sizes.
// Empty: it is well formed. At most `limit` lines, each with the operator's number.
std::vector<std::string> trace_violations(const StepTrace& trace, size_t limit = 20);

// Why no order with residents apart can be planned for steps like this, in words; empty if it
// can. A storage that is made in one step and gone in a later one is no resident of either.
std::string why_not_plannable(const StepTrace& trace);

// Of each storage, the operators between which it lives in program order: [first, last], from
// where it comes first (0 if it was there before) to where the program lets go of it (the last
// if it stays).
struct Life {
  uint32_t first = 0;
  uint32_t last = 0;
};
std::vector<Life> liveness(const StepTrace& trace);
// Of its operators, run once each.
Nanos total_cost(const StepTrace& trace);
// Most bytes live at once in program order, workspaces included.
Bytes program_order_peak(const StepTrace& trace);

}  // namespace tidemark
