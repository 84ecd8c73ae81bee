#include "models/nn/module.h"

#include <vector>

#include "ops/autograd/autograd.h"
#include "ops/elementwise/compare.h"

namespace tidemark {

std::vector<NamedTensor> Module::parameters() const {
  std::vector<NamedTensor> all;
  collect(&Module::parameters_, "", all);
  return all;
}

std::vector<NamedTensor> Module::buffers() const {
  std::vector<NamedTensor> all;
  collect(&Module::buffers_, "", all);
  return all;
}

std::vector<NamedTensor> Module::trained() const {
  std::vector<NamedTensor> all = parameters();
  std::erase_if(all, [](const NamedTensor& each) { return !requires_grad(each.tensor); });
  return all;
}

int64_t Module::parameter_elements() const {
  int64_t count = 0;
  for (const NamedTensor& parameter : parameters()) count += parameter.tensor.elements();
  return count;
}

void Module::freeze(bool on) {
  for (const NamedTensor& each : parameters()) tidemark::freeze(each.tensor, on);
}

void Module::visit(const std::function<void(const std::string&, Module&)>& visit) {
  this->visit("", visit);
}

void Module::visit(const std::string& prefix,
                   const std::function<void(const std::string&, Module&)>& visit) {
  for (const auto& [name, child] : children_) {
    visit(prefix + name, *child);
    child->visit(prefix + name + ".", visit);
  }
}

void Module::train(bool on) {
  training_ = on;
  for (const auto& [name, child] : children_) child->train(on);
}

void Module::compute_in(DType dtype) {
  compute_type_ = dtype;
  for (const auto& [name, child] : children_) child->compute_in(dtype);
}

Tensor Module::working(const Tensor& tensor) const { return cast(tensor, compute_type_); }

void Module::register_parameter(std::string name, Tensor& tensor) {
  require_grad(tensor);
  name_tensor(tensor, path_of(name));
  parameters_.push_back({std::move(name), tensor});
}

void Module::register_buffer(std::string name, const Tensor& tensor) {
  name_tensor(tensor, path_of(name));
  buffers_.push_back({std::move(name), tensor});
}

void Module::register_child(std::string name, Module& child) {
  child.move_to(path_of(name));
  children_.emplace_back(std::move(name), &child);
}

std::string Module::path_of(const std::string& name) const {
  return *path_ ? std::string(path_) + "." + name : name;
}

void Module::move_to(std::string_view path) {
  path_ = intern(path);
  for (const auto* own : {&parameters_, &buffers_}) {
    for (const NamedTensor& each : *own) name_tensor(each.tensor, path_of(each.name));
  }
  for (const auto& [name, child] : children_) child->move_to(path_of(name));
}

void Module::collect(List list, const std::string& prefix,
                     std::vector<NamedTensor>& into) const {
  for (const NamedTensor& own : this->*list) into.push_back({prefix + own.name, own.tensor});
  for (const auto& [name, child] : children_) child->collect(list, prefix + name + ".", into);
}

}  // namespace tidemark
