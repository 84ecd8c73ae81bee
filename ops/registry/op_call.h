// One call of an operator: the Recipe that the runtime executes, first and on recomputation.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "ops/registry/op.h"
#include "runtime/tensor/recipe.h"

namespace tidemark {

class OpCall final : public Recipe {
 public:
  // Everything a kernel receives except addresses; shared with executions still in flight.
  struct Body {
    const OpDef* op = nullptr;
    Attrs attrs;
    Scalars scalars{};
    std::vector<TensorMeta> inputs;
    std::vector<TensorMeta> outputs;
    std::shared_ptr<const PreparedKernel> kernel;  // null on devices without data
  };

  // The i-th tensor is a view of Recipe::inputs[slots[i]].
  OpCall(std::shared_ptr<const Body> body, std::vector<uint32_t> slots)
      : body_(std::move(body)), slots_(std::move(slots)) {}

  const char* name() const override { return body_->op->name; }
  Event launch(Device& device, const Addresses& addresses, uint64_t tag) override;

  const Body& body() const { return *body_; }
  const std::vector<uint32_t>& slots() const { return slots_; }
  void set_slots(std::vector<uint32_t> slots) { slots_ = std::move(slots); }
  Nanos expected{0};

 private:
  std::shared_ptr<const Body> body_;
  std::vector<uint32_t> slots_;
};

}  // namespace tidemark
