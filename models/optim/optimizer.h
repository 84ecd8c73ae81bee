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
  // Weight decay is for matrices, and tensors of more dimensions, alone: biases and norms'
  // weights have none, as in transformers' Trainer.
  void decay_matrices_only() { decays_all_ = false; }
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
  // Adds a tensor of zeros to the state of parameter `i`. REQUIRES: `i` is the parameter that
  // state was last added to, or the next.
  void add_state(size_t i, const char* name, DType dtype, const Shape& shape);
  // State tensor `which` of parameter `i`, in the order in which they were added.
  const Tensor& state_of(size_t i, size_t which) const {
    return state_[first_state_[i] + which].tensor;
  }
  size_t parameters() const { return parameters_.size(); }
  const Tensor& parameter(size_t i) const { return parameters_[i].tensor; }
  const std::string& name(size_t i) const { return parameters_[i].name; }
  bool decays(size_t i) const { return decays_all_ || parameter(i).shape().rank() > 1; }

  struct Update {
    size_t parameter;
    Tensor gradient;
  };

 private:
  // Updates by one operator. `count`: how often each parameter has been updated, including now.
  // All or none of them decay.
  virtual void update(std::span<const Update> updates, int64_t count) = 0;
  // Only parameters of one kind are updated by one operator. Below 0: each is by itself.
  virtual int kind_of(size_t /*i*/) const { return 0; }

  // Device memory of the tensors of parameter i's update.
  Bytes bytes_of_update(size_t i, const Tensor& gradient) const;
  // Whether two parameters share memory, or either with the other's gradient.
  bool share_memory(size_t a, size_t b) const;
  void issue(std::span<const size_t> group);

  const char* rule_;
  std::vector<NamedTensor> parameters_;
  UpdateGroups groups_;
  bool decays_all_ = true;
  std::vector<NamedTensor> state_;
  std::vector<size_t> first_state_;  // of each parameter, and the end
  double learning_rate_;
  std::vector<int64_t> updates_;
};

// How Adam's numbers are stored; the update is described in ops/optimizer/optimizer.h.
struct AdamStorage {
  // A float32 master beside each bfloat16 parameter; otherwise bfloat16 parameters are rounded
  // at random.
  bool masters = true;
  // Mean and variance in 8 bits, for parameters of at least kSmallest8bit elements. Results
  // differ from those of float32 state.
  bool eight_bit = false;
  // Names of parameters whose mean and variance stay float32 all the same: those of embeddings,
  // without which training is less stable (section 2.3 of the paper, dynamic_map.h).
  std::vector<std::string> in_float32{};
  // Of random rounding. The bits depend on the seed, the parameter's position in the list, its
  // number of updates and the element alone.
  uint64_t seed = 0;
};
inline constexpr int64_t kSmallest8bit = 4096;  // smaller ones would save little

// Parameters are float32 or bfloat16; those of make_unfused_adam() must be float32, or
// UsageError is thrown. A master is filled from its parameter by the parameter's first update.
// From then on it is the master that counts: values written to the parameter are overwritten.
// The rules and their options are those of ops/optimizer/optimizer.h. All throw UsageError
// naming an option that is NaN, infinite or out of range.
//
// State: "NAME.momentum", with momentum; "NAME.master", of bfloat16 parameters.
std::unique_ptr<Optimizer> make_sgd(std::vector<NamedTensor> parameters,
                                    const SgdOptions& options);
// AdamW if options.decoupled is set. State: "NAME.mean", "NAME.variance", and, where it exists,
// "NAME.mean_scale", "NAME.variance_scale", "NAME.master".
std::unique_ptr<Optimizer> make_adam(std::vector<NamedTensor> parameters,
                                     const AdamOptions& options,
                                     const AdamStorage& storage = {});
// The same rule as a dozen elementwise operators per parameter, as in frameworks without fused
// updates; equal to make_adam() up to rounding. For planning such steps.
std::unique_ptr<Optimizer> make_unfused_adam(std::vector<NamedTensor> parameters,
                                             const AdamOptions& options);

}  // namespace tidemark
