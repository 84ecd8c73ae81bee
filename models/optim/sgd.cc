#include "models/optim/check_options.h"
#include "models/optim/optimizer.h"
#include "ops/view/contiguous.h"

namespace tidemark {
namespace {

class Sgd final : public Optimizer {
 public:
  Sgd(std::vector<NamedTensor> parameters, const SgdOptions& options)
      : Optimizer("sgd", std::move(parameters), options.lr), options_(options) {
    for (size_t i = 0; i < this->parameters(); ++i) {
      const Shape& shape = parameter(i).shape();
      if (has_momentum()) add_state(i, "momentum", DType::kFloat32, shape);
      if (has_master(i)) add_state(i, "master", DType::kFloat32, shape);
    }
  }

 private:
  bool has_momentum() const { return options_.momentum != 0; }
  bool has_master(size_t i) const { return parameter(i).dtype() == DType::kBFloat16; }
  int kind_of(size_t i) const override { return has_master(i) ? 1 : 0; }

  void update(std::span<const Update> updates, int64_t count) override {
    SgdOptions now = options_;
    now.lr = learning_rate();
    if (!decays(updates.front().parameter)) now.weight_decay = 0;
    std::vector<SgdUpdate> all;
    for (const auto& [i, gradient] : updates) {
      SgdUpdate one{parameter(i), has_master(i) ? contiguous(gradient) : gradient, {}};
      if (has_momentum()) one.momentum_buffer = state_of(i, 0);
      if (has_master(i)) one.master = state_of(i, has_momentum() ? 1 : 0);
      all.push_back(one);
    }
    sgd_step_(all, now, count == 1);
  }

  const SgdOptions options_;
};

}  // namespace

std::unique_ptr<Optimizer> make_sgd(std::vector<NamedTensor> parameters,
                                    const SgdOptions& options) {
  return std::make_unique<Sgd>(std::move(parameters), checked(options));
}

}  // namespace tidemark
