#include "models/optim/optimizer.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "models/optim/check_options.h"
#include "ops/autograd/autograd.h"
#include "runtime/core/errors.h"
#include "runtime/core/names.h"
#include "runtime/session/session.h"

namespace tidemark {

Optimizer::Optimizer(const char* rule, std::vector<NamedTensor> parameters,
                     double learning_rate)
    : rule_(rule),
      parameters_(std::move(parameters)),
      first_state_(parameters_.size() + 1, 0),
      learning_rate_(learning_rate),
      updates_(parameters_.size(), 0) {
  const Session& session = Session::current();
  for (const NamedTensor& parameter : parameters_) session.check_own(parameter.tensor, rule_);
}

void Optimizer::set_learning_rate(double rate) {
  check_not_negative(rule_, "learning rate", rate);
  learning_rate_ = rate;
}

void Optimizer::set_update_counts(std::vector<int64_t> counts) {
  if (counts.size() != parameters_.size()) {
    throw UsageError("[" + std::string(rule_) + "] " + std::to_string(counts.size()) +
                     " update counts for " + std::to_string(parameters_.size()) +
                     " parameters");
  }
  for (const int64_t count : counts) {
    if (count < 0) {
      throw UsageError("[" + std::string(rule_) + "] an update count of " +
                       std::to_string(count) + "; must not be negative");
    }
  }
  updates_ = std::move(counts);
}

void Optimizer::add_state(size_t i, const char* name, DType dtype, const Shape& shape) {
  const std::string full = parameters_[i].name + "." + name;
  const auto zeros = [](Bytes, std::span<std::byte> piece) {
    std::fill(piece.begin(), piece.end(), std::byte{0});
  };
  state_.push_back(
      {full, Session::current().upload_from(zeros, TensorMeta::contiguous(dtype, shape),
                                            Category::kOptimizerState, intern(full))});
  std::fill(first_state_.begin() + static_cast<ptrdiff_t>(i) + 1, first_state_.end(),
            state_.size());
}

Bytes Optimizer::bytes_of_update(size_t i, const Tensor& gradient) const {
  Bytes bytes = parameter(i).storage()->size() + gradient.storage()->size();
  for (size_t s = first_state_[i]; s < first_state_[i + 1]; ++s) {
    bytes += state_[s].tensor.storage()->size();
  }
  return bytes;
}

// Whether the order of updates matters: two parameters are views of one storage, or the
// gradient of one is the other.
bool Optimizer::share_memory(size_t a, size_t b) const {
  const Storage *of_a = parameter(a).storage().get(), *of_b = parameter(b).storage().get();
  return of_a == of_b || of_a == grad_of(parameter(b)).storage().get() ||
         of_b == grad_of(parameter(a)).storage().get();
}

void Optimizer::issue(std::span<const size_t> group) {
  const int64_t count = updates_[group.front()] + 1;
  std::vector<Update> updates;
  updates.reserve(group.size());
  for (const size_t i : group) updates.push_back({i, grad_of(parameter(i))});
  const ScopedPath path(group.size() == 1 ? parameter(group.front()).storage()->name : "");
  update(updates, count);
  for (const size_t i : group) {
    updates_[i] = count;
    clear_grad(parameter(i));
  }
}

void Optimizer::step() {
  for (const NamedTensor& parameter : parameters_) {
    Session::current().check_own(parameter.tensor, rule_);
  }
  const NoGrad no_grad;
  std::vector<size_t> due;
  std::vector<GroupMember> members;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor gradient = grad_of(parameter(i));
    if (!gradient) continue;
    const bool small = parameter(i).storage()->bytes() <= groups_.most_of_parameter &&
                       gradient.meta().is_contiguous() && kind_of(i) >= 0;
    due.push_back(i);
    members.push_back({bytes_of_update(i, gradient), !small});
  }
  const auto may_join = [&](std::span<const size_t> open, size_t next) {
    return std::all_of(open.begin(), open.end(), [&](size_t other) {
      return updates_[due[other]] == updates_[due[next]] &&
             kind_of(due[other]) == kind_of(due[next]) &&
             decays(due[other]) == decays(due[next]) && !share_memory(due[other], due[next]);
    });
  };
  for (std::vector<size_t>& group : in_groups(members, groups_, may_join)) {
    for (size_t& i : group) i = due[i];
    issue(group);
  }
}

void Optimizer::zero_grad() {
  for (const NamedTensor& parameter : parameters_) clear_grad(parameter.tensor);
}

}  // namespace tidemark
