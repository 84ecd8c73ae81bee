#include "models/optim/check_options.h"
#include "models/optim/optimizer.h"

namespace tidemark {
namespace {

class Sgd final : public Optimizer {
 public:
  Sgd(std::vector<NamedTensor> parameters, const SgdOptions& options)
      : Optimizer("sgd", std::move(parameters), options.lr), options_(options) {
    if (options_.momentum == 0) return;
    for (size_t i = 0; i < this->parameters(); ++i) {
      add_state(i, "momentum", DType::kFloat32, parameter(i).shape());
    }
  }

 private:
  void update(std::span<const Update> updates, int64_t count) override {
    SgdOptions now = options_;
    now.lr = learning_rate();
    if (!decays(updates.front().parameter)) now.weight_decay = 0;
    std::vector<SgdUpdate> all;
    for (const auto& [i, gradient] : updates) {
      const Tensor momentum = options_.momentum != 0 ? state_of(i, 0) : Tensor();
      all.push_back({parameter(i), gradient, momentum});
    }
    sgd_step_(all, now, count == 1);
  }

  const SgdOptions options_;
};

}  // namespace

std::unique_ptr<Optimizer> make_sgd(std::vector<NamedTensor> parameters,
                                    const SgdOptions& options) {
  return std::make_unique<Sgd>(float32_only("sgd", std::move(parameters)), checked(options));
}

}  // namespace tidemark
