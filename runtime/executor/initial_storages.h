// Which storage bears which number of a trace when a step begins, before any call has used it.
//
//   in use as the recorded step began         as a later step of the same program begins
//     parameter, id 1             number 0      id 1                     the same storage
//     a step's loss, id 30        foreign       id 85, of the same size
//     gradient of 4 KiB, id 31    number 4      id 87, the oldest gradient of 4 KiB
//     gradient of 4 KiB, id 32    number 5      id 88, the next one
//
// A storage that lives over many steps is known by its id. What one step makes and a later one
// uses is a new storage each time: it is known by its kind and its age, as steps that repeat
// make their storages in the same order. That is a guess; where it is wrong, a call uses
// another storage than the trace has, and the schedule is left.
//
// Threads: values, no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/category.h"
#include "runtime/core/intrusive_ptr.h"
#include "runtime/core/units.h"
#include "runtime/residency/step_recorder.h"
#include "runtime/schedule/step_trace.h"
#include "runtime/tensor/storage.h"

namespace tidemark {

class InitialStorages {
 public:
  static constexpr uint32_t kForeign = UINT32_MAX;
  using InUse = std::vector<IntrusivePtr<Storage>>;  // newest first: Storages::in_use()

  InitialStorages() = default;
  // As the step begins that is recorded.
  explicit InitialStorages(const InUse& in_use);
  // The step has been recorded: what `trace` uses has a number from now on, the rest is
  // foreign.
  void number(const StepTrace& trace, const StepRecorder& recorder);

  // Why a later step's storages cannot be told by this; empty if they can.
  const std::string& why_not() const { return why_not_; }
  // Sizes, newest first.
  std::vector<Bytes> foreign() const;
  // Of each storage in use as a later step begins: its number, or kForeign. None: a storage
  // that the trace uses is missing.
  std::optional<std::vector<uint32_t>> numbers(const InUse& in_use) const;

 private:
  struct Entry {
    uint32_t id = 0;
    Bytes size{0};
    Category category = Category::kActivation;
    std::string_view origin;
    uint32_t number = kForeign;

    explicit Entry(const Storage& storage)
        : id(storage.id()),
          size(storage.size()),
          category(storage.category),
          origin(storage.origin()) {}
    bool same_kind(const Entry& other) const {
      return size == other.size && category == other.category && origin == other.origin;
    }
  };

  std::vector<Entry> entries_;  // the oldest first
  std::string why_not_;
};

}  // namespace tidemark
