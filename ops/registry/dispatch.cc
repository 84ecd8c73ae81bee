#include "ops/registry/dispatch.h"

#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <type_traits>

#include "ops/registry/kernels.h"
#include "ops/registry/op_call.h"
#include "ops/registry/recent_map.h"
#include "runtime/core/errors.h"
#include "runtime/core/names.h"
#include "runtime/residency/residency.h"

namespace tidemark {
namespace {

// Computed once per signature.
struct Prepared {
  std::vector<TensorMeta> outputs;
  std::shared_ptr<const PreparedKernel> kernel;
  Bytes workspace{0};
  CostKey cost_key = 0;
};

// A run needs some hundreds at a time; a kernel takes some kilobytes.
constexpr size_t kMaxPrepared = 4096;

struct SessionCache : RecentMap<Prepared> {
  SessionCache() : RecentMap(kMaxPrepared) {}
};

// All sessions of the process share kernels, so that the real run uses those of its dry run. A
// kernel chosen for one GPU does not suit another; the profile names the GPU.
std::shared_ptr<const PreparedKernel> prepare_kernel(const std::string& signature,
                                                     const DeviceProfile& profile,
                                                     const OpDef& op, const OpQuery& query) {
  static std::mutex mutex;
  static RecentMap<std::shared_ptr<const PreparedKernel>> kernels(kMaxPrepared);
  const PrepareKernel prepare = find_kernel(op, profile.backend);
  if (!prepare) return nullptr;
  const std::string key = signature + static_cast<char>(profile.backend) + profile.name;
  {
    const std::scoped_lock lock(mutex);
    if (const auto* found = kernels.find(key)) return *found;
  }
  auto kernel = std::make_shared<const PreparedKernel>(prepare(query));
  const std::scoped_lock lock(mutex);
  if (const auto* found = kernels.find(key)) return *found;  // another thread was first
  return kernels.insert(key, std::move(kernel));
}

template <class T>
void append(std::string& key, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  key.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void append(std::string& key, const TensorMeta& meta) {
  append(key, static_cast<char>(meta.dtype));
  append(key, static_cast<char>(meta.shape.rank()));
  for (size_t i = 0; i < meta.shape.rank(); ++i) {
    append(key, meta.shape[i]);
    append(key, meta.strides[i]);
  }
  // A kernel may depend on an address only by its alignment.
  append(key, static_cast<char>(meta.offset * size_of(meta.dtype).count() % 64));
}

// Equal bytes mean the same operator, attributes, inputs and threads; they are unique per
// process. They begin with what may differ in another process.
constexpr size_t kProcessPart =
    sizeof(uintptr_t) + sizeof(OpQuery::threads) + sizeof(OpQuery::tf32);
void write_signature(std::string& key, const OpDef& op, const OpQuery& query) {
  key.clear();
  append(key, reinterpret_cast<uintptr_t>(&op));
  append(key, query.threads);
  append(key, query.tf32);
  key.append(reinterpret_cast<const char*>(query.attrs.data()), query.attrs.size());
  for (const TensorMeta& meta : query.inputs) append(key, meta);
}

// The key depends only on what is the same in every process and on every machine.
CostKey price(Session& session, const std::string& signature, const OpDef& op,
              const OpQuery& query) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  const auto add = [&hash](std::string_view bytes) {
    for (const char c : bytes) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  };
  std::string name(op.name);
  add(name);
  add(std::string_view(signature).substr(kProcessPart));
  for (const TensorMeta& meta : query.inputs) name += ' ' + meta.shape.to_string();
  return session.costs().key(hash, op.cost(query), name);
}

Prepared prepare(Session& session, const std::string& signature, const OpDef& op,
                 OpQuery query) {
  Prepared prepared;
  prepared.outputs = op.infer(query);
  query.outputs = prepared.outputs;
  const Device& device = session.device();
  const Backend backend = device.profile().backend;
  prepared.kernel = prepare_kernel(signature, device.profile(), op, query);
  if (prepared.kernel) {
    prepared.workspace = prepared.kernel->workspace;
  } else if (device.has_data()) {
    throw UsageError("[" + std::string(op.name) + "] has no kernel for device " +
                     device.name() +
                     (backend == Backend::kCuda ? "; call register_cuda_kernels() first" : ""));
  } else if (op.modelled_workspace) {
    prepared.workspace = op.modelled_workspace(query);
  }
  prepared.cost_key = price(session, signature, op, query);
  return prepared;
}

const Prepared& look_up(Session& session, const OpDef& op, const OpQuery& query) {
  if (!session.dispatch_cache()) session.dispatch_cache() = std::make_shared<SessionCache>();
  auto& cache = *static_cast<SessionCache*>(session.dispatch_cache().get());
  thread_local std::string signature;
  write_signature(signature, op, query);
  if (Prepared* found = cache.find(signature)) {
    if (!session.costs().is_current(found->cost_key)) {
      OpQuery whole = query;
      whole.outputs = found->outputs;
      found->cost_key = price(session, signature, op, whole);
    }
    return *found;
  }
  return cache.insert(signature, prepare(session, signature, op, query));
}

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
