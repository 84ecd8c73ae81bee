// What turns gradients into new parameters.
//
// State (momenta) is made with the optimizer, not at its first step: so all steps need the same
// memory, and a dry run of one step finds the true peak. It is zero at first.
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

  // Updates each parameter that has a gradient, and drops that gradient as soon as its update
  // has been issued: in order, but that small ones may come later than the large ones after
  // them, with others of a group.
  void step();
  void set_groups(const UpdateGroups& groups) { groups_ = groups; }
  void zero_grad();  // drops all gradients

  double learning_rate() const { return learning_rate_; }
  // Throws UsageError unless it is a number, finite and not negative.
  void set_learning_rate(double rate);

  // "layer1.0.conv1.weight.momentum", parameter by parameter.
  const std::vector<NamedTensor>& state() const { return state_; }
  // How often each parameter has been updated, which Adam's correction and the first step of
  // momentum go by: with the state, what a checkpoint needs.
  const std::vector<int64_t>& update_counts() const { return updates_; }
  // Throws UsageError unless there are as many as parameters, and none is negative.
  void set_update_counts(std::vector<int64_t> counts);

 protected:
  // `rule` is what errors begin with; static text. Throws UsageError if the parameters are not
  // the current session's.
  Optimizer(const char* rule, std::vector<NamedTensor> parameters, double learning_rate);
  // Adds zeros of the shape of each parameter, for every name.
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
  // By one operator. `count`: how often each has been updated, this time included.
  virtual void update(std::span<const Update> updates, int64_t count) = 0;

  // As the operator will have it on the device.
  Bytes bytes_of_update(size_t i, const Tensor& gradient) const;
  // Of two parameters.
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

// The rules, and their options, are those of ops/optimizer/optimizer.h. SGD has no state
// without momentum. All throw UsageError that names the option which is no number, infinite or
// out of range.
std::unique_ptr<Optimizer> make_sgd(std::vector<NamedTensor> parameters,
                                    const SgdOptions& options);
// AdamW if options.decoupled.
std::unique_ptr<Optimizer> make_adam(std::vector<NamedTensor> parameters,
                                     const AdamOptions& options);
// The same rule as a dozen elementwise operators for each parameter, as frameworks without
// fused updates run it; equal to make_adam()'s up to rounding. For planning such steps.
std::unique_ptr<Optimizer> make_unfused_adam(std::vector<NamedTensor> parameters,
                                             const AdamOptions& options);

}  // namespace tidemark
