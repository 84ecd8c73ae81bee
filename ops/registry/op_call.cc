#include "ops/registry/op_call.h"

#include <algorithm>
#include <new>
#include <utility>

#include "ops/registry/prepared.h"
#include "runtime/core/errors.h"
#include "runtime/core/names.h"
#include "runtime/device/pages.h"
#include "runtime/session/session.h"

namespace tidemark {
namespace {

// What a kernel needs when its turn comes. The arena keeps the addresses valid until then.
struct Launch {
  std::shared_ptr<const OpCall::Body> body;
  std::vector<std::byte*> inputs;
  std::vector<std::byte*> outputs;
  std::byte* workspace;
  const char* name;

  void run(void* native_stream) const {
    const KernelArgs args{body->inputs, body->outputs, inputs,        outputs,
                          workspace,    body->attrs,   body->scalars, native_stream};
    try {
      body->kernel->run(args);
    } catch (const std::bad_alloc&) {
      throw HostMemoryError("[" + std::string(body->op->name) + "] host memory ran out" +
                            memory_limits());
    } catch (const std::exception& error) {
      const std::string op = body->op->name;
      throw DeviceError("[" + op + "] " + error.what() +
                        (name == op ? "" : " (" + std::string(name) + ")"));
    }
  }
};

}  // namespace

const Prepared& OpCall::prepare(Session& session, Body& body) {
  const Prepared& prepared =
      look_up(session, *body.op,
              {body.inputs, {}, body.attrs, session.threads(), session.options().tf32});
  body.outputs = prepared.outputs;
  body.kernel = prepared.kernel;
  return prepared;
}

void OpCall::add_input(Storage& storage, uint32_t version) {
  const bool written = body_->op->writes(slots_.size());
  const auto known = std::find_if(inputs.begin(), inputs.end(), [&](const Input& input) {
    return input.storage.get() == &storage;
  });
  slots_.push_back(static_cast<uint32_t>(known - inputs.begin()));
  if (known == inputs.end()) {
    inputs.push_back({IntrusivePtr<Storage>(&storage), version, written});
  } else {
    known->written = known->written || written;
  }
}

void OpCall::complete(Session& session, const Prepared& prepared) {
  if (body_->op->may_overwrite != 0) may_overwrite = overwritable();
  workspace = prepared.workspace;
  cost_key = prepared.cost_key;
  expected_ = session.costs().time(prepared.cost_key);
}

// The inputs whose place `y`, the call's first output, may take. They are as large as y, and no
// other operand is a view of them, so element j is element j for all.
uint32_t OpCall::overwritable() const {
  const TensorMeta& y = body_->outputs.front();
  uint32_t those = 0, others = 0;
  for (size_t i = 0; i < slots_.size(); ++i) {
    const TensorMeta& x = body_->inputs[i];
    const bool fits = body_->op->overwrites(i) && x.dtype == y.dtype && x.shape == y.shape &&
                      x.offset == 0 && x.is_contiguous() &&
                      inputs[slots_[i]].storage->bytes() == y.bytes();
    (fits ? those : others) |= 1U << slots_[i];
  }
  return those & ~others;
}

Operand OpCall::input(size_t i) const {
  const Input& input = inputs[slots_[i]];
  return {input.storage, input.version, body_->inputs[i]};
}

Operand OpCall::output(size_t i) const {
  return {IntrusivePtr<Storage>(outputs[i].storage), 0, body_->outputs[i]};
}

const OpCall* OpCall::maker(size_t i) const {
  return dynamic_cast<const OpCall*>(inputs[slots_[i]].storage->managed.recipe.get());
}

std::vector<IntrusivePtr<Recipe>> OpCall::variants() const {
  std::vector<IntrusivePtr<Recipe>> calls;
  if (!body_->op->variants) return calls;
  Session& session = Session::current();
  for (const OtherCall& other : body_->op->variants(*this)) {
    auto body = std::make_shared<Body>();
    body->op = &other.op;
    body->attrs = other.attrs;
    body->scalars = body_->scalars;
    for (const Operand& input : other.inputs) body->inputs.push_back(input.meta);
    const Prepared& prepared = prepare(session, *body);
    auto call = make_intrusive<OpCall>(std::move(body));
    for (const Operand& input : other.inputs) call->add_input(*input.storage, input.version);
    call->complete(session, prepared);
    call->call_name = call_name;
    call->outputs = outputs;
    calls.emplace_back(std::move(call));
  }
  return calls;
}

Event OpCall::launch(Device& device, const Addresses& addresses, uint64_t tag) {
  if (!device.has_data()) return device.enqueue(StreamId::kCompute, {{}, expected_, tag});
  auto launch = std::make_shared<Launch>();
  launch->body = body_;
  launch->workspace = addresses.workspace;
  launch->name = label();
  launch->inputs.reserve(slots_.size());
  for (size_t i = 0; i < slots_.size(); ++i) {
    const TensorMeta& meta = body_->inputs[i];
    launch->inputs.push_back(addresses.inputs[slots_[i]] +
                             meta.offset * size_of(meta.dtype).count());
  }
  launch->outputs.assign(addresses.outputs.begin(), addresses.outputs.end());
  return device.enqueue(StreamId::kCompute, {[launch = std::move(launch)](void* native_stream) {
                                               launch->run(native_stream);
                                             },
                                             expected_, tag, body_->kernel->launches.get()});
}

}  // namespace tidemark
