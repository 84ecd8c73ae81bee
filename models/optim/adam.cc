#include <algorithm>
#include <array>
#include <utility>

#include "models/optim/check_options.h"
#include "models/optim/optimizer.h"
#include "ops/view/contiguous.h"
#include "runtime/core/philox.h"

namespace tidemark {
namespace {

// Position among the Philox streams of one seed.
constexpr uint32_t kRoundingStream = 0x524F554E;

class Adam final : public Optimizer {
 public:
  Adam(std::vector<NamedTensor> parameters, const AdamOptions& options,
       const AdamStorage& storage)
      : Optimizer("adam", std::move(parameters), options.lr),
        options_(options),
        storage_(storage) {
    for (size_t i = 0; i < this->parameters(); ++i) {
      const Shape& shape = parameter(i).shape();
      const DType state = eight_bit(i) ? DType::kUInt8 : DType::kFloat32;
      add_state(i, "mean", state, shape);
      add_state(i, "variance", state, shape);
      if (eight_bit(i)) {
        const Shape scales{adam_scales(shape.elements())};
        add_state(i, "mean_scale", DType::kFloat32, scales);
        add_state(i, "variance_scale", DType::kFloat32, scales);
      }
      if (has_master(i)) add_state(i, "master", DType::kFloat32, shape);
    }
  }

 private:
  bool is_bfloat16(size_t i) const { return parameter(i).dtype() == DType::kBFloat16; }
  bool has_master(size_t i) const { return storage_.masters && is_bfloat16(i); }
  bool eight_bit(size_t i) const {
    const std::vector<std::string>& others = storage_.in_float32;
    return storage_.eight_bit && parameter(i).elements() >= kSmallest8bit &&
           std::find(others.begin(), others.end(), name(i)) == others.end();
  }
  int kind_of(size_t i) const override {
    if (is_bfloat16(i) && !has_master(i)) return -1;
    return (has_master(i) ? 1 : 0) + (eight_bit(i) ? 2 : 0);
  }

  void update(std::span<const Update> updates, int64_t count) override {
    AdamOptions now = options_;
    now.lr = learning_rate();
    if (!decays(updates.front().parameter)) now.weight_decay = 0;
    std::vector<AdamUpdate> all;
    for (const auto& [i, gradient] : updates) {
      const bool compact = is_bfloat16(i) || eight_bit(i);
      AdamUpdate one{parameter(i), compact ? contiguous(gradient) : gradient, state_of(i, 0),
                     state_of(i, 1)};
      if (eight_bit(i)) {
        one.m_scale = state_of(i, 2);
        one.v_scale = state_of(i, 3);
      }
      if (has_master(i)) one.master = state_of(i, eight_bit(i) ? 4 : 2);
      all.push_back(one);
    }
    adam_step_(all, now, count, rounding_key(updates.front().parameter));
  }

  // A scalar holds 53 bits.
  uint64_t rounding_key(size_t i) const {
    const std::array<uint32_t, 4> words = philox4x32(
        {static_cast<uint32_t>(i), 0, 0, kRoundingStream}, philox_key(storage_.seed));
    return (uint64_t{words[0]} << 32 | words[1]) >> 11;
  }

  const AdamOptions options_;
  const AdamStorage storage_;
};

}  // namespace

std::unique_ptr<Optimizer> make_adam(std::vector<NamedTensor> parameters,
                                     const AdamOptions& options, const AdamStorage& storage) {
  return std::make_unique<Adam>(std::move(parameters), checked(options), storage);
}

}  // namespace tidemark
