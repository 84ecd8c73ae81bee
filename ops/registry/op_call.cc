#include "ops/registry/op_call.h"

#include <new>
#include <utility>

#include "runtime/core/errors.h"
#include "runtime/device/pages.h"

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

Event OpCall::launch(Device& device, const Addresses& addresses, uint64_t tag) {
  if (!device.has_data()) return device.enqueue(StreamId::kCompute, {{}, expected, tag});
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
                                             expected, tag, body_->kernel->launches.get()});
}

}  // namespace tidemark
