// How to compute or recompute storages: one call of an operator with all its dependencies.
//
// Declared here and implemented in ops/, so that the runtime includes no operator. The first
// execution and every recomputation use the same path through `launch`: same kernel, same
// attributes, same random state.
//
// Recipes belong to calls, not to outputs: all outputs of a call come back together. Operators
// that write in place have calls too, but these are never kept, because in-place writes cannot
// be recomputed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/core/intrusive_ptr.h"
#include "runtime/core/units.h"
#include "runtime/cost/cost_model.h"
#include "runtime/device/device.h"
#include "runtime/tensor/storage.h"

namespace tidemark {

class Recipe : public RefCounted {
 public:
  struct Input {
    IntrusivePtr<Storage> storage;
    uint32_t version = 0;  // of the storage when the call was issued
    bool written = false;  // the operator writes it in place
  };
  struct Output {
    Storage* storage = nullptr;  // null once deleted: scratch is written instead
    Bytes bytes{0};
  };
  struct Addresses {
    std::span<std::byte* const> inputs;   // as `inputs`
    std::span<std::byte* const> outputs;  // as `outputs`
    std::byte* workspace = nullptr;       // `workspace` bytes, kAlignment-aligned
  };

  virtual const char* name() const = 0;  // of the operator; static text
  // Enqueues on the compute stream. Inputs are ready and nothing moves until the returned
  // event.
  virtual Event launch(Device& device, const Addresses& addresses, uint64_t tag) = 0;
  // Other implementations: calls that make the same outputs, to the same bits, from storages
  // that the program may have dropped. A schedule may run one instead of this call. They are
  // made anew each time, from the recipes of the inputs as they are now.
  virtual std::vector<IntrusivePtr<Recipe>> variants() const { return {}; }

  // The call, for people (runtime/core/names.h): "layer3.2.conv1: conv2d". Null: the operator's
  // name.
  const char* call_name = nullptr;
  const char* label() const { return call_name ? call_name : name(); }
  std::vector<Input> inputs;    // distinct storages, in a fixed order
  std::vector<Output> outputs;  // distinct storages
  // Bit i: the first output may take the space of inputs[i] once that is unused.
  uint32_t may_overwrite = 0;
  Bytes workspace{0};
  CostKey cost_key = 0;

  // Used by the residency manager.
  mutable uint64_t mark = 0;  // for graph walks
  int32_t kept_by = 0;        // storages with this recipe
};

}  // namespace tidemark
