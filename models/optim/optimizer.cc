#include "models/optim/optimizer.h"

#include <algorithm>

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

Bytes Optimizer::bytes_of_update(size_t i, const Tensor& gradient) const {
  Bytes bytes = parameter(i).storage()->size() + gradient.storage()->size();
  for (size_t s = 0; s < states_per_parameter_; ++s) bytes += state_of(i, s).storage()->size();
  return bytes;
}

// Of parameters that are views of one storage, or a gradient that is another parameter: then
// the order of updates matters.
bool Optimizer::shares_memory(const Group& group, const Update& update) const {
  const Storage* written = parameter(update.parameter).storage().get();
  const Storage* read = update.gradient.storage().get();
  return std::any_of(group.updates.begin(), group.updates.end(), [&](const Update& other) {
    const Storage* other_written = parameter(other.parameter).storage().get();
    return other_written == written || other_written == read ||
           other.gradient.storage().get() == written;
  });
}

void Optimizer::issue(Group& group) {
  if (!group.updates.empty()) update(group.updates, group.count);
  for (const Update& update : group.updates) {
    updates_[update.parameter] = group.count;
    clear_grad(parameter(update.parameter));
  }
  group = {};
}

void Optimizer::step() {
  const NoGrad no_grad;
  Bytes largest{0};
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (const Tensor gradient = grad_of(parameter(i))) {
      largest = std::max(largest, bytes_of_update(i, gradient));
    }
  }
  const Bytes room = std::min(groups_.most_of_group, largest);
  Group open;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    Update update{i, grad_of(parameter(i))};
    if (!update.gradient) continue;
    const int64_t count = updates_[i] + 1;
    const Bytes bytes = bytes_of_update(i, update.gradient);
    const bool small = parameter(i).storage()->bytes() <= groups_.most_of_parameter &&
                       update.gradient.meta().is_contiguous();
    if (!small || bytes > room) {
      Group alone{{std::move(update)}, count, bytes};
      issue(alone);
      continue;
    }
    if (open.count != count || open.bytes + bytes > room ||
        open.updates.size() == groups_.most_parameters || shares_memory(open, update)) {
      issue(open);
    }
    open.updates.push_back(std::move(update));
    open.count = count;
    open.bytes += bytes;
  }
  issue(open);
}

void Optimizer::zero_grad() {
  for (const NamedTensor& parameter : parameters_) clear_grad(parameter.tensor);
}

}  // namespace tidemark
