// One call of an operator: the Recipe that the runtime executes, first and on recomputation.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "ops/registry/op.h"
#include "runtime/tensor/recipe.h"

namespace tidemark {

struct Prepared;
class Session;

// A tensor as a call read or wrote it. A reference to the storage, not a use: its bytes may be
// gone.
struct Operand {
  IntrusivePtr<Storage> storage;
  uint32_t version = 0;
  TensorMeta meta;
};

// Another implementation of a call: a call of another operator that makes the same outputs, to
// the same bits (OpDef::variants).
struct OtherCall {
  const OpDef& op;
  std::vector<Operand> inputs;
  Attrs attrs{};
};

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

  // Fills in the body's outputs and kernel. The result is valid until the next call.
  static const Prepared& prepare(Session& session, Body& body);

  explicit OpCall(std::shared_ptr<const Body> body) : body_(std::move(body)) {}

  // The storage of the body's next input.
  void add_input(Storage& storage, uint32_t version);
  // Sets workspace, cost and what may be overwritten. REQUIRES: all inputs have been added.
  void complete(Session& session, const Prepared& prepared);

  const char* name() const override { return body_->op->name; }
  Event launch(Device& device, const Addresses& addresses, uint64_t tag) override;
  std::vector<IntrusivePtr<Recipe>> variants() const override;

  const Body& body() const { return *body_; }
  Operand input(size_t i) const;
  // Without a storage if that has been deleted.
  Operand output(size_t i) const;
  // The call that made input i, if it can be run again; else null.
  const OpCall* maker(size_t i) const;

 private:
  uint32_t overwritable() const;

  std::shared_ptr<const Body> body_;
  std::vector<uint32_t> slots_;  // the body's i-th input is a view of inputs[slots_[i]]
  Nanos expected_{0};
};

}  // namespace tidemark
