#include "models/optim/optimizer.h"

namespace tidemark {
namespace {

class Sgd final : public Optimizer {
 public:
  Sgd(std::vector<NamedTensor> parameters, const SgdOptions& options)
      : Optimizer(std::move(parameters), options.lr), options_(options) {
    if (options_.momentum != 0) make_state({"momentum"});
  }

 private:
  void update(size_t i, const Tensor& gradient) override {
    SgdOptions now = options_;
    now.lr = learning_rate();
    const Tensor momentum = options_.momentum != 0 ? state_of(i, 0) : Tensor();
    sgd_step_(parameter(i), gradient, momentum, now, updates(i) == 1);
  }

  const SgdOptions options_;
};

}  // namespace

std::unique_ptr<Optimizer> make_sgd(std::vector<NamedTensor> parameters,
                                    const SgdOptions& options) {
  return std::make_unique<Sgd>(std::move(parameters), options);
}

}  // namespace tidemark
