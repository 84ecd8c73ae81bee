// An optimizer turns gradients into new parameters.
//
// State (momenta) is created with the optimizer, not at its first step, and is initially zero.
// All steps therefore need the same memory, and a dry run of one step finds the true peak.
//
// Threads: the session's issuing thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/nn/module.h"
#include "models/optim/groups.h"
#include "ops/optimizer/optimizer.h"

namespace tidemark {

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Updates each parameter that has a gradient, and drops the gradient as soon as its update
  // has been issued. The order is that of the parameters, except that a small one may be
  // updated with its group, after large ones that follow it.
  void step();
  void set_groups(const UpdateGroups& groups) { groups_ = groups; }
  void zero_grad();  // drops all gradients

  double learning_rate() const { return learning_rate_; }
  // Throws UsageError unless `rate` is finite and not negative.
  void set_learning_rate(double rate);

  // Named "layer1.0.conv1.weight.momentum", parameter by parameter.
  const std::vector<NamedTensor>& state() const { return state_; }
  // Number of updates of each parameter. Adam's correction and the first step of momentum
  // depend on it, so a checkpoint needs it along with the state.
  const std::vector<int64_t>& update_counts() const { return updates_; }
  // Throws UsageError unless there is one count per parameter and none is negative.
  void set_update_counts(std::vector<int64_t> counts);

 protected:
  // `rule` is the prefix of error messages; it must be static text. Throws UsageError if the
  // parameters do not belong to the current session.
  Optimizer(const char* rule, std::vector<NamedTensor> parameters, double learning_rate);
  // Adds, for every name, a tensor of zeros in the shape of each parameter.
  void make_state(const std::vector<std::string>& names);
  // State tensor `which` (position in make_state's names) of parameter `i`.
  const Tensor& state_of(size_t i, size_t which) const {
    return state_[i * states_per_parameter_ + which].tensor;
  }
  const Tensor& parameter(size_t i) const { return parameters_[i].tensor; }

  struct Update {
    size_t parameter;
    Tensor gradient;
  };

 private:
  // Updates by one operator. `count`: how often each parameter has been updated, including now.
  virtual void update(std::span<const Update> updates, int64_t count) = 0;

  // Device memory of the tensors of parameter i's update.
  Bytes bytes_of_update(size_t i, const Tensor& gradient) const;
  // Whether two parameters share memory, or either with the other's gradient.
  bool share_memory(size_t a, size_t b) const;
  void issue(std::span<const size_t> group);

  const char* rule_;
  std::vector<NamedTensor> parameters_;
  UpdateGroups groups_;
  std::vector<NamedTensor> state_;
  size_t states_per_parameter_ = 0;
  double learning_rate_;
  std::vector<int64_t> updates_;
};

// The rules and their options are those of ops/optimizer/optimizer.h. SGD without momentum has
// no state. All throw UsageError naming an option that is NaN, infinite or out of range.
std::unique_ptr<Optimizer> make_sgd(std::vector<NamedTensor> parameters,
                                    const SgdOptions& options);
// AdamW if options.decoupled is set.
std::unique_ptr<Optimizer> make_adam(std::vector<NamedTensor> parameters,
                                     const AdamOptions& options);
// The same rule as a dozen elementwise operators per parameter, as in frameworks without fused
// updates; equal to make_adam() up to rounding. For planning such steps.
std::unique_ptr<Optimizer> make_unfused_adam(std::vector<NamedTensor> parameters,
                                             const AdamOptions& options);

}  // namespace tidemark
