#include "tests/support/toy_program.h"

#include <cstring>

#include "runtime/residency/residency.h"

namespace tidemark::testing {
namespace {

uint32_t mix(uint32_t a, uint32_t b) {
  a = (a ^ b) * 0x9E3779B1U;
  return (a ^ (a >> 15)) * 0x85EBCA77U + b;
}

}  // namespace

Event ToyCall::launch(Device& device, const Addresses& addresses, uint64_t tag) {
  struct Span {
    uint32_t* words;
    int64_t count;
    bool written;
  };
  std::vector<Span> in, out;
  for (size_t i = 0; i < inputs.size(); ++i) {
    in.push_back({reinterpret_cast<uint32_t*>(addresses.inputs[i]),
                  inputs[i].storage->bytes().count() / 4, inputs[i].written});
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    out.push_back({reinterpret_cast<uint32_t*>(addresses.outputs[i]),
                   outputs[i].bytes.count() / 4, true});
  }
  auto* scratch = reinterpret_cast<uint32_t*>(addresses.workspace);
  const int64_t scratch_words = workspace.count() / 4;
  auto run = [in, out, scratch, scratch_words, salt = salt_](void*) {
    for (int64_t i = 0; i < scratch_words; ++i)
      scratch[i] = mix(salt, static_cast<uint32_t>(i));
    uint32_t all = salt;
    for (const Span& x : in) {
      for (int64_t i = 0; i < x.count; ++i) all = mix(all, x.words[i]);
    }
    for (int64_t i = 0; i < scratch_words; ++i) all = mix(all, scratch[i]);
    for (size_t j = 0; j < out.size(); ++j) {
      for (int64_t i = 0; i < out[j].count; ++i) {
        out[j].words[i] = mix(all, static_cast<uint32_t>(i) + static_cast<uint32_t>(j) * 7919U);
      }
    }
    for (const Span& x : in) {
      for (int64_t i = 0; x.written && i < x.count; ++i) x.words[i] = mix(x.words[i], all);
    }
  };
  return device.enqueue(StreamId::kCompute, {run, Nanos(1000), tag});
}

Handle toy_upload(Session& session, int64_t words, uint32_t salt, Category category) {
  auto data = std::make_shared<std::vector<uint32_t>>(static_cast<size_t>(words));
  for (size_t i = 0; i < data->size(); ++i) (*data)[i] = mix(salt, static_cast<uint32_t>(i));
  Handle handle(session.residency().storages().create(Bytes(words * 4), category, "upload"));
  session.upload(*handle, data->data(), data);
  return handle;
}

std::vector<Handle> toy_call(Session& session, const std::vector<Handle>& inputs,
                             const std::vector<ToyOutput>& outputs, uint32_t salt,
                             int64_t workspace_words) {
  auto call = make_intrusive<ToyCall>(salt);
  for (const Handle& input : inputs) {
    bool known = false;
    for (const auto& other : call->inputs) known = known || other.storage.get() == input.get();
    if (!known) call->inputs.push_back({input.ptr(), input->version(), false});
  }
  call->workspace = Bytes(workspace_words * 4);
  double words = 0;
  std::vector<Handle> handles;
  for (const ToyOutput& output : outputs) {
    handles.emplace_back(session.residency().storages().create(Bytes(output.words * 4),
                                                               Category::kActivation, "toy"));
    call->outputs.push_back({handles.back().get(), handles.back()->bytes()});
    words += static_cast<double>(output.words);
  }
  for (size_t i = 0; i < call->inputs.size() && i < 32 && !outputs.empty(); ++i) {
    const bool same_size = call->inputs[i].storage->bytes() == handles[0]->bytes();
    call->may_overwrite |= same_size ? 1U << i : 0U;
  }
  call->cost_key =
      session.costs().key(static_cast<uint64_t>(words) + 1,
                          {words * 100, Bytes(static_cast<int64_t>(words) * 8), false});
  session.execute(call);
  return handles;
}

void toy_update(Session& session, const std::vector<Handle>& inputs, uint32_t salt) {
  auto call = make_intrusive<ToyCall>(salt);
  for (const Handle& input : inputs) {
    bool known = false;
    for (const auto& other : call->inputs) known = known || other.storage.get() == input.get();
    if (!known) call->inputs.push_back({input.ptr(), input->version(), false});
  }
  call->inputs.front().written = true;
  call->cost_key = session.costs().key(7, {1000, Bytes(1000), false});
  session.execute(call);
}

uint64_t toy_hash(Session& session, const Handle& handle) {
  std::vector<unsigned char> bytes(static_cast<size_t>(handle->bytes().count()));
  if (!session.download(*handle, Bytes(0), handle->bytes(), copy_into(bytes.data()))) return 0;
  uint64_t hash = 14695981039346656037ULL;
  for (unsigned char byte : bytes) hash = (hash ^ byte) * 1099511628211ULL;
  return hash;
}

}  // namespace tidemark::testing
