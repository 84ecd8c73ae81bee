#include "models/optim/optimizer.h"

#include "models/nn/parameter_init.h"
#include "ops/autograd/autograd.h"

namespace tidemark {

Optimizer::Optimizer(std::vector<NamedTensor> parameters, double learning_rate)
    : parameters_(std::move(parameters)),
      learning_rate_(learning_rate),
      updates_(parameters_.size(), 0) {}

void Optimizer::make_state(const std::vector<std::string>& names) {
  states_per_parameter_ = names.size();
  for (const NamedTensor& parameter : parameters_) {
    for (const std::string& name : names) {
      state_.push_back({parameter.name + "." + name,
                        upload_constant(parameter.tensor.shape(), 0, Category::kOptimizerState,
                                        "optimizer state")});
    }
  }
}

void Optimizer::step() {
  const NoGrad no_grad;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor gradient = grad_of(parameters_[i].tensor);
    if (!gradient) continue;
    ++updates_[i];
    update(i, gradient);
    clear_grad(parameters_[i].tensor);
  }
}

void Optimizer::zero_grad() {
  for (const NamedTensor& parameter : parameters_) clear_grad(parameter.tensor);
}

}  // namespace tidemark
