// Adam without fused updates, as frameworks run it: a dozen elementwise operators per
// parameter. It is slow; planners from other papers are given steps like this.
#include <cmath>
#include <utility>

#include "models/nn/parameter_init.h"
#include "models/optim/check_options.h"
#include "models/optim/optimizer.h"
#include "ops/elementwise/elementwise.h"

namespace tidemark {
namespace {

class UnfusedAdam final : public Optimizer {
 public:
  UnfusedAdam(std::vector<NamedTensor> parameters, const AdamOptions& options)
      : Optimizer("adam", std::move(parameters), options.lr),
        options_(options),
        eps_(upload_constant({}, static_cast<float>(options.eps), Category::kBuffer, "eps")) {
    for (size_t i = 0; i < this->parameters(); ++i) {
      for (const char* name : {"mean", "variance"}) {
        add_state(i, name, DType::kFloat32, parameter(i).shape());
      }
    }
    set_groups({.most_of_parameter = Bytes(0)});
  }

 private:
  void update(std::span<const Update> updates, int64_t count) override {
    for (const auto& [i, gradient] : updates) {
      update_one(parameter(i), gradient, state_of(i, 0), state_of(i, 1),
                 static_cast<double>(count), decays(i) ? options_.weight_decay : 0);
    }
  }

  void update_one(const Tensor& param, const Tensor& gradient, const Tensor& mean,
                  const Tensor& variance, double count, double weight_decay) const {
    const double beta1 = options_.beta1, beta2 = options_.beta2;
    const double rate = learning_rate();
    Tensor g = gradient;
    if (weight_decay != 0 && options_.decoupled) mul_(param, 1 - rate * weight_decay);
    if (weight_decay != 0 && !options_.decoupled) g = add_scaled(gradient, param, weight_decay);
    mul_(mean, beta1);
    add_(mean, scale(g, 1 - beta1));
    mul_(variance, beta2);
    add_(variance, scale(mul(g, g), 1 - beta2));
    const double correction = std::sqrt(1 - std::pow(beta2, count));
    const Tensor denominator = add(scale(sqrt(variance), 1 / correction), eps_);
    const double step_size = rate / (1 - std::pow(beta1, count));
    add_(param, scale(div(mean, denominator), -step_size));
  }

  const AdamOptions options_;
  const Tensor eps_;
};

}  // namespace

std::unique_ptr<Optimizer> make_unfused_adam(std::vector<NamedTensor> parameters,
                                             const AdamOptions& options) {
  return std::make_unique<UnfusedAdam>(float32_only("adam", std::move(parameters)),
                                       checked(options));
}

}  // namespace tidemark
