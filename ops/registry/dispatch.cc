#include "ops/registry/dispatch.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "ops/registry/op_call.h"
#include "ops/registry/prepared.h"
#include "runtime/core/names.h"
#include "runtime/residency/residency.h"

namespace tidemark {
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
  const Prepared& prepared = OpCall::prepare(session, *body);

  auto call = make_intrusive<OpCall>(std::move(body));
  for (const Tensor& input : inputs) {
    Storage& storage = *input.storage();
    call->add_input(storage, storage.version());
  }
  call->call_name = call_name(op.name);
  call->complete(session, prepared);

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
