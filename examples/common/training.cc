#include "examples/common/training.h"

#include <algorithm>

#include "ops/autograd/autograd.h"
#include "ops/elementwise/unary.h"

namespace tidemark {

namespace {

std::unique_ptr<Optimizer> make_rule(const RunFlags& flags, std::vector<NamedTensor> parameters,
                                     double rate, const AdamStorage& storage) {
  const double lr = flags.learning_rate.value_or(rate);
  if (flags.optimizer == "sgd") {
    return make_sgd(std::move(parameters),
                    {.lr = lr, .momentum = flags.momentum, .weight_decay = flags.weight_decay});
  }
  const AdamOptions adam{
      .lr = lr, .weight_decay = flags.weight_decay, .decoupled = flags.optimizer == "adamw"};
  if (flags.optimizer == kUnfusedAdam) return make_unfused_adam(std::move(parameters), adam);
  return make_adam(std::move(parameters), adam, storage);
}

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const RunFlags& flags,
                                          std::vector<NamedTensor> parameters, double rate,
                                          const AdamStorage& storage) {
  std::unique_ptr<Optimizer> made = make_rule(flags, std::move(parameters), rate, storage);
  // Without decay, there is no reason to update matrices apart from others.
  if (!flags.decays_all && flags.weight_decay > 0) made->decay_matrices_only();
  return made;
}

std::vector<MicroBatch> micro_batches(int64_t rows, int64_t size) {
  std::vector<MicroBatch> parts;
  for (int64_t begin = 0; begin < rows; begin += size) {
    parts.push_back({begin, std::min(size, rows - begin)});
  }
  return parts;
}

StepOutcome train_step(const std::vector<MicroBatch>& parts,
                       const std::function<Forward(const MicroBatch&)>& forward,
                       const std::function<void()>& update) {
  const int64_t rows = parts.back().begin + parts.back().size;
  StepOutcome outcome;
  for (const MicroBatch& part : parts) {
    Forward result = forward(part);
    if (parts.size() > 1 && !result.is_share) {
      const double share = static_cast<double>(part.size) / static_cast<double>(rows);
      result.loss = scale(result.loss, share);
    }
    backward(result.loss);
    if (&part == &parts.back()) update();
    // Read now, so that what the loss was computed from is freed before the next micro-batch.
    const std::optional<float> loss = read_scalar<float>(result.loss);
    if (loss) outcome.loss = outcome.loss.value_or(0) + *loss;
    if (result.correct) {
      const std::optional<int64_t> correct = read_scalar<int64_t>(result.correct);
      if (correct) outcome.correct = outcome.correct.value_or(0) + *correct;
    }
    outcome.guesses += result.guesses;
  }
  return outcome;
}

}  // namespace tidemark
