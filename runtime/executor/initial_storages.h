// Maps storages to their numbers in a trace when a step begins, before any call has used them.
//
//   in use as the recorded step began         as a later step of the same program begins
//     parameter, id 1             number 0      id 1                     the same storage
//     a step's loss, id 30        foreign       id 85, of the same size
//     gradient of 4 KiB, id 31    number 4      id 87, the oldest gradient of 4 KiB
//     gradient of 4 KiB, id 32    number 5      id 88, the next one
//
// A storage that lives over many steps is identified by its id. A storage that one step makes
// and a later one uses is new each time. It is identified by its kind and its age, because
// repeated steps make their storages in the same order. If that guess is wrong, a call does not
// match the trace and the schedule is left.
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
  // Takes the storages in use when the recorded step begins.
  explicit InitialStorages(const InUse& in_use);
  // Assigns numbers after the step has been recorded: storages in `trace` get their number, all
  // others are foreign.
  void number(const StepTrace& trace, const StepRecorder& recorder);

  // Why storages of a later step cannot be identified; empty if they can.
  const std::string& why_not() const { return why_not_; }
  // Sizes of foreign storages, newest first.
  std::vector<Bytes> foreign() const;
  // For each storage in use when a later step begins: its number, or kForeign. None if a
  // storage of the trace is missing.
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

  std::vector<Entry> entries_;  // oldest first
  std::string why_not_;
};

}  // namespace tidemark
