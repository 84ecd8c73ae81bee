// One step as the program issued it: its operators, uploads and reads, and the storages that
// they use. Planners read traces; later steps are matched against them.
//
//   op 0  upload            -> s0
//   op 1  conv    s0 s1@0   -> s2       s1 was there before: a parameter
//   op 2  relu    s2        -> s3       after it the program drops s2
//   ...
//   op 9  sgd     s1@0! s8              writes s1 in place: from now on it is s1@1
//   op 10 read    s7                    the program waits for a value
//
// A call may have variants: other implementations, of which a schedule may choose one. Whatever
// else is said of a call's inputs, workspace and cost is of the call as the program issued it.
//
// Views refer to their storage, so a trace has no aliases. Storages are numbered by first
// appearance: an operator's inputs before its outputs.
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

// A size, or a sum of sizes, above this is a mistake.
inline constexpr int64_t kTooManyBytes = int64_t{1} << 60;

struct StepTrace {
  enum class Kind : uint8_t { kCall, kUpload, kRead };

  struct Storage {
    std::string_view origin;  // the operator that made it, or "upload"
    Category category = Category::kActivation;
    Bytes size{0};          // rounded up as in the arena
    bool at_start = false;  // existed before the step
    bool at_end = false;    // exists after the step
    bool may_evict = true;  // if it can be recomputed
    bool may_offload = true;
    // For people, "layer3.2.conv1.weight"; empty: its origin. Ignored by same_program().
    std::string_view name{};
    std::string_view label() const { return name.empty() ? origin : name; }
    bool operator==(const Storage&) const = default;
  };
  struct Input {
    uint32_t storage = 0;
    uint32_t version = 0;  // number of earlier in-place writes in this step
    bool written = false;  // in place
    bool operator==(const Input&) const = default;
  };
  // Another implementation of a call: it makes the same outputs, to the same bits, and writes
  // nothing in place. Fields are as in Op. The program may have dropped its inputs by then: a
  // schedule that runs it keeps them, or computes them again.
  struct Variant {
    std::string_view name;
    uint64_t signature = 0;
    std::vector<Input> inputs{};
    std::vector<uint32_t> may_overwrite{};
    Bytes workspace{0};
    Nanos cost{0};
    bool operator==(const Variant&) const = default;
  };
  // What a run of a call reads, takes and costs.
  struct Implementation {
    const std::vector<Input>& inputs;
    const std::vector<uint32_t>& may_overwrite;
    Bytes workspace;
    Nanos cost;
  };
  struct Op {
    Kind kind = Kind::kCall;
    std::string_view name;  // of the operator
    // Hash of the call without its operands: operator, attributes, shapes. Excludes
    // hyper-parameters that change from step to step.
    uint64_t signature = 0;
    std::vector<Input> inputs{};
    std::vector<uint32_t> outputs{};
    // Inputs whose space the first output may take once they are unused: each element is read
    // before it is written.
    std::vector<uint32_t> may_overwrite{};
    // Storages that the program dropped after issuing this operator and before the next.
    std::vector<uint32_t> released{};
    Bytes workspace{0};
    Nanos cost{0};
    // Which ones a call has depends on the recipes that are kept: ignored by same_program().
    std::vector<Variant> variants{};
    // For people, "layer3.2.conv1: conv2d"; empty: the operator's name. Ignored by
    // same_program().
    std::string_view call{};
    // Of the call itself (0), or of variants[variant - 1].
    Implementation implementation(uint32_t variant) const {
      if (variant == 0) return {inputs, may_overwrite, workspace, cost};
      const Variant& other = variants[variant - 1];
      return {other.inputs, other.may_overwrite, other.workspace, other.cost};
    }
    std::string_view label() const { return call.empty() ? name : call; }
    bool operator==(const Op&) const = default;
  };

  std::vector<Op> ops;
  std::vector<Storage> storages;
  std::shared_ptr<const void> text{};  // owns names read from a file; null: none

  bool operator==(const StepTrace& other) const {
    return ops == other.ops && storages == other.storages;
  }
};

// Whether a plan for one also fits the other. Costs and names may differ.
bool same_program(const StepTrace& a, const StepTrace& b);
// Equal for traces of the same program; different otherwise, except for 64-bit collisions.
uint64_t signature_of(const StepTrace& trace);

// Faults in the trace: ids out of range, a storage used before it is made or after it is
// dropped, a storage made twice, versions that do not follow the writes, negative or huge
// sizes. Empty: the trace is well formed. At most `limit` lines, each with the operator's
// number.
std::vector<std::string> trace_violations(const StepTrace& trace, size_t limit = 20);

// Why no order with residents apart can be planned for such steps, in words; empty if one can.
// A storage made in one step and freed in a later one is not a resident of either.
std::string why_not_plannable(const StepTrace& trace);

// The operators [first, last] between which each storage lives in program order: from its first
// appearance (0 if it existed before) to the operator after which the program drops it (the
// last operator if it survives).
struct Life {
  uint32_t first = 0;
  uint32_t last = 0;
};
std::vector<Life> liveness(const StepTrace& trace);
// Total cost of the operators, run once each.
Nanos total_cost(const StepTrace& trace);
// Most bytes live at once in program order, workspaces included.
Bytes program_order_peak(const StepTrace& trace);

}  // namespace tidemark
