#include "examples/common/training.h"

namespace tidemark {

std::unique_ptr<Optimizer> make_optimizer(const RunFlags& flags,
                                          std::vector<NamedTensor> parameters, double rate) {
  const double lr = flags.learning_rate.value_or(rate);
  if (flags.optimizer == "sgd") {
    return make_sgd(std::move(parameters),
                    {.lr = lr, .momentum = flags.momentum, .weight_decay = flags.weight_decay});
  }
  const AdamOptions adam{
      .lr = lr, .weight_decay = flags.weight_decay, .decoupled = flags.optimizer == "adamw"};
  if (flags.optimizer == kUnfusedAdam) return make_unfused_adam(std::move(parameters), adam);
  return make_adam(std::move(parameters), adam);
}

}  // namespace tidemark
