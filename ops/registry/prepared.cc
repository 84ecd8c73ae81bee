#include "ops/registry/prepared.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>

#include "ops/registry/kernels.h"
#include "ops/registry/recent_map.h"
#include "runtime/core/errors.h"

namespace tidemark {
namespace {

// A run needs some hundreds at a time; a kernel takes some kilobytes.
constexpr size_t kMaxPrepared = 4096;

struct SessionCache : RecentMap<Prepared> {
  SessionCache() : RecentMap(kMaxPrepared) {}
};

// What all sessions of the process share. Another thread may be first to make a value.
template <class Value>
class SharedCache {
 public:
  template <class Make>
  std::shared_ptr<const Value> find_or_make(const std::string& key, const Make& make) {
    {
      const std::scoped_lock lock(mutex_);
      if (const auto* found = values_.find(key)) return *found;
    }
    auto value = std::make_shared<const Value>(make());
    const std::scoped_lock lock(mutex_);
    if (const auto* found = values_.find(key)) return *found;
    return values_.insert(key, std::move(value));
  }

 private:
  std::mutex mutex_;
  RecentMap<std::shared_ptr<const Value>> values_{kMaxPrepared};
};

// A kernel chosen for one GPU does not suit another; the profile names the GPU.
std::string key_on(const std::string& signature, const DeviceProfile& profile) {
  return signature + static_cast<char>(profile.backend) + profile.name;
}

// Sessions share kernels, so that the real run uses those of its dry run.
std::shared_ptr<const PreparedKernel> prepare_kernel(const std::string& signature,
                                                     const DeviceProfile& profile,
                                                     const OpDef& op, const OpQuery& query) {
  static SharedCache<PreparedKernel> kernels;
  const PrepareKernel prepare = find_kernel(op, profile.backend);
  if (!prepare) return nullptr;
  std::string key = key_on(signature, profile);
  if (!query.algorithm.empty()) (key += '/') += query.algorithm;
  return kernels.find_or_make(key, [&] { return prepare(query); });
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

// The names of the call's other algorithms. Shared, as a library may take long to list them.
using Names = std::vector<std::string>;
std::shared_ptr<const Names> other_algorithms(const std::string& signature,
                                              const DeviceProfile& profile, ListAlgorithms list,
                                              const OpQuery& query) {
  static SharedCache<Names> lists;
  std::string key = key_on(signature, profile);
  append(key, list);  // changes once kernels are registered
  return lists.find_or_make(key, [&] { return list(query); });
}

// FNV-1a.
uint64_t hash_on(uint64_t hash, std::string_view bytes) {
  for (const char c : bytes) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash;
}

// Depends only on what is the same in every process and on every machine.
uint64_t portable_hash(const OpDef& op, const std::string& signature) {
  return hash_on(hash_on(0xcbf29ce484222325, op.name),
                 std::string_view(signature).substr(kProcessPart));
}

std::string described(const OpDef& op, const OpQuery& query) {
  std::string name(op.name);
  for (const TensorMeta& meta : query.inputs) name += ' ' + meta.shape.to_string();
  return name;
}

CostKey price(Session& session, uint64_t hash, const OpDef& op, const OpQuery& query) {
  std::string name = described(op, query);
  if (!query.algorithm.empty()) {
    hash = hash_on(hash, query.algorithm);
    (name += " by ") += query.algorithm;
  }
  return session.costs().key(hash, op.cost(query), name);
}

// Fills in kernel, workspace and cost for the query's algorithm.
void prepare_kernel_of(Session& session, const std::string& signature, const OpDef& op,
                       const OpQuery& query, Prepared& prepared) {
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
  prepared.algorithm = query.algorithm;
  prepared.cost_key = price(session, portable_hash(op, signature), op, query);
}

Bytes total(std::span<const TensorMeta> tensors) {
  Bytes sum{0};
  for (const TensorMeta& tensor : tensors) sum += tensor.bytes();
  return sum;
}

AlgorithmOffer make_offer(Session& session, const std::string& signature, const OpDef& op,
                          OpQuery query, const Names& names) {
  AlgorithmOffer offer{described(op, query), total(query.inputs) + total(query.outputs), {}};
  const auto add = [&](const std::string& name) {
    Prepared prepared;
    query.algorithm = name;
    prepare_kernel_of(session, signature, op, query, prepared);
    offer.algorithms.push_back(
        {name, prepared.workspace, session.costs().time(prepared.cost_key)});
  };
  add("");
  for (const std::string& name : names) add(name);
  return offer;
}

// The call's algorithm in the session's table. `list`: of its other algorithms.
std::string_view chosen_algorithm(Session& session, const std::string& signature,
                                  const OpDef& op, const OpQuery& query, ListAlgorithms list) {
  const AlgorithmTable* table = session.options().algorithms.get();
  if (!table && !session.offers()) return {};
  const uint64_t hash = portable_hash(op, signature);
  const std::string* chosen = nullptr;
  if (table) {
    if (const auto found = table->find(hash); found != table->end()) chosen = &found->second;
  }
  if (!chosen && !session.offers()) return {};
  const auto listed = other_algorithms(signature, session.device().profile(), list, query);
  const Names& names = *listed;
  if (session.offers() && !names.empty()) {
    (*session.offers())[hash] = make_offer(session, signature, op, query, names);
  }
  if (!chosen) return {};
  if (std::find(names.begin(), names.end(), *chosen) == names.end()) {
    std::string others;
    for (const std::string& name : names) (others += others.empty() ? "" : ", ") += name;
    throw UsageError("[" + std::string(op.name) + "] the algorithm '" + *chosen +
                     "' that was chosen for " + described(op, query) +
                     " does not exist on device " + session.device().name() +
                     (names.empty() ? "; there is only the default"
                                    : "; others than the default: " + others));
  }
  return *chosen;
}

Prepared prepare(Session& session, const std::string& signature, const OpDef& op,
                 OpQuery query) {
  Prepared prepared;
  prepared.outputs = op.infer(query);
  query.outputs = prepared.outputs;
  if (const auto list = find_algorithms(op, session.device().profile().backend)) {
    query.algorithm = chosen_algorithm(session, signature, op, query, list);
  }
  prepare_kernel_of(session, signature, op, query, prepared);
  return prepared;
}

}  // namespace

const Prepared& look_up(Session& session, const OpDef& op, const OpQuery& query) {
  if (!session.dispatch_cache()) session.dispatch_cache() = std::make_shared<SessionCache>();
  auto& cache = *static_cast<SessionCache*>(session.dispatch_cache().get());
  thread_local std::string signature;
  write_signature(signature, op, query);
  if (Prepared* found = cache.find(signature)) {
    if (!session.costs().is_current(found->cost_key)) {
      OpQuery whole = query;
      whole.outputs = found->outputs;
      whole.algorithm = found->algorithm;
      found->cost_key = price(session, portable_hash(op, signature), op, whole);
    }
    return *found;
  }
  return cache.insert(signature, prepare(session, signature, op, query));
}

}  // namespace tidemark
