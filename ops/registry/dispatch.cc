#include "ops/registry/dispatch.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "ops/registry/op_call.h"
#include "ops/registry/prepared.h"
#include "runtime/core/names.h"
#include "runtime/residency/residency.h"

namespace tidemark {
namespace {

uint32_t slot_of(OpCall& call, Storage* storage, bool written) {
  for (uint32_t i = 0; i < call.inputs.size(); ++i) {
    if (call.inputs[i].storage.get() != storage) continue;
    call.inputs[i].written = call.inputs[i].written || written;
    return i;
  }
  call.inputs.push_back({IntrusivePtr<Storage>(storage), storage->version(), written});
  return static_cast<uint32_t>(call.inputs.size() - 1);
}

// The inputs whose place `y`, the call's first output, may take. They are as large as y, and no
// other operand is a view of them, so element j is element j for all.
uint32_t overwritable(const OpDef& op, const OpCall& call, std::span<const Tensor> inputs,
                      const TensorMeta& y) {
  uint32_t those = 0, others = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorMeta& x = inputs[i].meta();
    const bool fits = op.overwrites(i) && x.dtype == y.dtype && x.shape == y.shape &&
                      x.offset == 0 && x.is_contiguous() &&
                      inputs[i].storage()->bytes() == y.bytes();
    (fits ? those : others) |= 1U << call.slots()[i];
  }
  return those & ~others;
}

}  // namespace

std::vector<Tensor> dispatch(const OpDef& op, std::span<const Tensor> inputs,
                             const Attrs& attrs, const Scalars& scalars) {
  Session& session = Session::current();
  auto body = std::make_shared<OpCall::Body>();
  body->op = &op;
  body->attrs = attrs;
  body->scalars = scalars;
  body->inputs.reserve(inputs.size());
  for (const Tensor& input : inputs) {
    session.check_own(input, op.name);
    body->inputs.push_back(input.meta());
  }
  const Prepared& prepared = look_up(
      session, op, {body->inputs, {}, body->attrs, session.threads(), session.options().tf32});
  body->outputs = prepared.outputs;
  body->kernel = prepared.kernel;

  std::vector<uint32_t> slots(inputs.size());
  auto call = make_intrusive<OpCall>(body, std::vector<uint32_t>{});
  for (size_t i = 0; i < inputs.size(); ++i) {
    slots[i] = slot_of(*call, inputs[i].storage().get(), op.writes(i));
  }
  call->set_slots(std::move(slots));
  if (op.may_overwrite != 0) {
    call->may_overwrite = overwritable(op, *call, inputs, prepared.outputs.front());
  }
  call->call_name = call_name(op.name);
  call->workspace = prepared.workspace;
  call->cost_key = prepared.cost_key;
  call->expected = session.costs().time(prepared.cost_key);

  std::vector<Tensor> outputs;
  outputs.reserve(prepared.outputs.size());
  for (const TensorMeta& meta : prepared.outputs) {
    StorageUse storage(
        session.residency().storages().create(meta.bytes(), session.category(), op.name));
    storage->name = output_name(call->call_name, outputs.size());
    call->outputs.push_back({storage.get(), storage->bytes()});
    outputs.emplace_back(std::move(storage), meta);
  }
  session.execute(call);
  return outputs;
}

std::vector<Tensor> dispatch(const OpDef& op, std::initializer_list<Tensor> inputs,
                             const Attrs& attrs, const Scalars& scalars) {
  return dispatch(op, std::span(inputs.begin(), inputs.size()), attrs, scalars);
}

Tensor dispatch1(const OpDef& op, std::initializer_list<Tensor> inputs, const Attrs& attrs,
                 const Scalars& scalars) {
  return std::move(dispatch(op, inputs, attrs, scalars).front());
}

}  // namespace tidemark
