// The input of a planner: one step as operators and the storages that they use.
//
// Single assignment: an operator that updates a storage in place writes a new name, an alias.
// Data then determine which operators precede others, with one exception: readers of the old
// name must precede the update. The maker of the problem states this with `after`.
//
//   storages   w        parameter, at_start, at_end
//              w.next   alias of w                       the updated one: same bytes
//   operators  conv     inputs x, w        outputs y
//              sgd      inputs w, dw       outputs w.next    after conv_backward, which reads w
//
// Sizes are those in the arena: round them up to its alignment first.
//
// Threads: values, no state. Ids are positions in the vectors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/units.h"

namespace tidemark::planner {

using OpId = int32_t;
using StorageId = int32_t;
inline constexpr int32_t kNone = -1;

enum class Kind : uint8_t { kParameter, kOptimizerState, kGradient, kActivation, kData };

struct Storage {
  std::string name;
  Bytes size{0};
  Kind kind = Kind::kActivation;
  // Holds a value before the first operator: lives from the start, if it is used at all.
  bool at_start = false;
  bool at_end = false;  // its value is needed after the last operator: lives to the end
  // The storage that this one is a view or a later version of: it lies in that storage and
  // keeps it alive. An alias of an alias names the underlying storage.
  StorageId alias_of = kNone;
  Bytes alias_offset{0};
};

// An output that may take an input's space, if the operator is the input's last use.
struct InPlace {
  OpId op = kNone;
  StorageId input = kNone;
  StorageId output = kNone;
  bool operator==(const InPlace&) const = default;
};

struct Operator {
  std::string name;
  std::vector<StorageId> inputs;
  std::vector<StorageId> outputs;
  std::vector<OpId> after;  // control edges: operators that run before it
  Bytes workspace{0};       // taken while it runs
  Nanos cost{0};
  int32_t stream = 0;
};

struct Problem {
  std::vector<Operator> operators;  // in program order
  std::vector<Storage> storages;
  std::vector<InPlace> may_be_in_place;
  Bytes budget{0};  // 0: none

  size_t op_count() const { return operators.size(); }
  // The storage that holds the bytes of `id`.
  StorageId root(StorageId id) const {
    return storages[id].alias_of == kNone ? id : storages[id].alias_of;
  }
};

// Throws UsageError, naming the operator or storage, for an id out of range, a negative size,
// sums beyond 62 bits, an alias that is not inside a storage, a storage written twice or never,
// a cycle, or a pair that cannot be in place.
void check_problem(const Problem& problem);

// Each operator's predecessors, sorted and unique: writers of its inputs, and `after`.
// REQUIRES: ids are in range.
std::vector<std::vector<OpId>> predecessors(const Problem& problem);

}  // namespace tidemark::planner
