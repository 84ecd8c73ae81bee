#include "tests/support/toy_program.h"

#include <cstring>

#include "runtime/residency/residency.h"

namespace tidemark::testing {
namespace {

uint32_t mix(uint32_t a, uint32_t b) {
  a = (a ^ b) * 0x9E3779B1U;
  return (a ^ (a >> 15)) * 0x85EBCA77U + b;
}

struct Span {
  uint32_t* words;
  int64_t count;
  bool written;
};

std::vector<Span> inputs_of(const Recipe& call, const Recipe::Addresses& addresses) {
  std::vector<Span> in;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    in.push_back({reinterpret_cast<uint32_t*>(addresses.inputs[i]),
                  call.inputs[i].storage->bytes().count() / 4, call.inputs[i].written});
  }
  return in;
}

// What a call's outputs depend on, and word i of output j.
class Mix {
 public:
  explicit Mix(uint32_t salt) : all_(salt) {}
  void add(uint32_t word) { all_ = mix(all_, word); }
  void add(const Span& x) {
    for (int64_t i = 0; i < x.count; ++i) add(x.words[i]);
  }
  uint32_t word(int64_t j, int64_t i) const {
    return mix(all_, static_cast<uint32_t>(i) + static_cast<uint32_t>(j) * 7919U);
  }
  uint32_t all() const { return all_; }

 private:
  uint32_t all_;
};

// Ends a call's mix with its workspace, and writes its outputs. Returns the whole mix.
Mix finish(Mix mixed, const Span& scratch, uint32_t salt, const std::vector<Span>& out) {
  for (int64_t i = 0; i < scratch.count; ++i)
    scratch.words[i] = mix(salt, static_cast<uint32_t>(i));
  mixed.add(scratch);
  for (size_t j = 0; j < out.size(); ++j) {
    for (int64_t i = 0; i < out[j].count; ++i)
      out[j].words[i] = mixed.word(static_cast<int64_t>(j), i);
  }
  return mixed;
}

std::vector<Span> outputs_of(const Recipe& call, const Recipe::Addresses& addresses) {
  std::vector<Span> out;
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    out.push_back({reinterpret_cast<uint32_t*>(addresses.outputs[i]),
                   call.outputs[i].bytes.count() / 4, true});
  }
  return out;
}

Span scratch_of(const Recipe& call, const Recipe::Addresses& addresses) {
  return {reinterpret_cast<uint32_t*>(addresses.workspace), call.workspace.count() / 4, true};
}

// Of a call (1) or a variant, which takes twice the time (2).
CostKey toy_key(CostModel& costs, const std::vector<Recipe::Output>& outputs, int64_t times) {
  int64_t words = 0;
  for (const Recipe::Output& output : outputs) words += output.bytes.count() / 4;
  const auto count = static_cast<uint64_t>(words);
  return costs.key(times == 1 ? toy_signature(count) : toy_variant_signature(count),
                   {static_cast<double>(times * words * 100), Bytes(times * words * 8), false});
}

}  // namespace

// A toy call that computes one of its inputs from what that was made of.
class ToyVariant final : public Recipe {
 public:
  // None if the input cannot be computed, or if that takes other contents of a storage than the
  // call reads.
  static IntrusivePtr<Recipe> make(const ToyCall& call, size_t input) {
    const Storage* made = call.inputs[input].storage.get();
    const auto* maker = dynamic_cast<const ToyCall*>(made->managed.recipe.get());
    if (!maker || maker == &call) return {};
    auto variant = make_intrusive<ToyVariant>(call.salt_, maker->salt_);
    for (size_t i = 0; i < call.inputs.size(); ++i)
      variant->reads_.push_back(i == input ? kComputed : variant->add(call.inputs[i]));
    for (const Input& from : maker->inputs) variant->maker_reads_.push_back(variant->add(from));
    for (size_t j = 0; j < maker->outputs.size(); ++j) {
      if (maker->outputs[j].storage == made) variant->output_ = static_cast<int64_t>(j);
    }
    for (const Input& each : variant->inputs) {
      if (each.storage.get() == made || each.version != each.storage->version()) return {};
    }
    variant->words_ = made->bytes().count() / 4;
    variant->maker_scratch_ = maker->workspace.count() / 4;
    variant->workspace = call.workspace;
    variant->cost_key = call.costs ? toy_key(*call.costs, call.outputs, 2) : call.cost_key;
    variant->outputs = call.outputs;
    for (size_t i = 0; i < variant->inputs.size() && !call.outputs.empty(); ++i) {
      const bool same_size = variant->inputs[i].storage->bytes() == call.outputs[0].bytes;
      variant->may_overwrite |= same_size ? 1U << i : 0U;
    }
    return variant;
  }

  ToyVariant(uint32_t salt, uint32_t maker_salt) : salt_(salt), maker_salt_(maker_salt) {}
  const char* name() const override { return "toy_variant"; }
  Event launch(Device& device, const Addresses& addresses, uint64_t tag) override {
    auto run = [in = inputs_of(*this, addresses), out = outputs_of(*this, addresses),
                scratch = scratch_of(*this, addresses), reads = reads_,
                maker_reads = maker_reads_, output = output_, words = words_,
                maker_scratch = maker_scratch_, salt = salt_, maker_salt = maker_salt_](void*) {
      Mix maker(maker_salt);
      for (const size_t i : maker_reads) maker.add(in[i]);
      for (int64_t i = 0; i < maker_scratch; ++i)
        maker.add(mix(maker_salt, static_cast<uint32_t>(i)));
      Mix mixed(salt);
      for (const size_t i : reads) {
        if (i != kComputed) {
          mixed.add(in[i]);
          continue;
        }
        for (int64_t w = 0; w < words; ++w) mixed.add(maker.word(output, w));
      }
      finish(mixed, scratch, salt, out);
    };
    return device.enqueue(StreamId::kCompute, {run, Nanos(2000), tag});
  }

 private:
  static constexpr size_t kComputed = SIZE_MAX;

  // Its place among the inputs, each of which is there once.
  size_t add(const Input& input) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].storage.get() == input.storage.get() &&
          inputs[i].version == input.version) {
        return i;
      }
    }
    inputs.push_back({input.storage, input.version, false});
    return inputs.size() - 1;
  }

  uint32_t salt_, maker_salt_;
  std::vector<size_t> reads_, maker_reads_;
  int64_t output_ = 0, words_ = 0, maker_scratch_ = 0;
};

std::vector<IntrusivePtr<Recipe>> ToyCall::variants() const {
  for (const Input& input : inputs) {
    if (input.written) return {};
  }
  std::vector<IntrusivePtr<Recipe>> made;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (auto variant = ToyVariant::make(*this, i)) made.push_back(std::move(variant));
  }
  return made;
}

Event ToyCall::launch(Device& device, const Addresses& addresses, uint64_t tag) {
  auto run = [in = inputs_of(*this, addresses), out = outputs_of(*this, addresses),
              scratch = scratch_of(*this, addresses), salt = salt_](void*) {
    Mix mixed(salt);
    for (const Span& x : in) mixed.add(x);
    const uint32_t all = finish(mixed, scratch, salt, out).all();
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
  std::vector<Handle> handles;
  for (const ToyOutput& output : outputs) {
    handles.emplace_back(session.residency().storages().create(Bytes(output.words * 4),
                                                               Category::kActivation, "toy"));
    call->outputs.push_back({handles.back().get(), handles.back()->bytes()});
  }
  for (size_t i = 0; i < call->inputs.size() && i < 32 && !outputs.empty(); ++i) {
    const bool same_size = call->inputs[i].storage->bytes() == handles[0]->bytes();
    call->may_overwrite |= same_size ? 1U << i : 0U;
  }
  call->cost_key = toy_key(session.costs(), call->outputs, 1);
  call->costs = &session.costs();
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
