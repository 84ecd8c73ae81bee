#include "models/nn/lora.h"

#include <algorithm>
#include <set>
#include <utility>

#include "runtime/core/errors.h"
#include "runtime/core/listed.h"

namespace tidemark {
namespace {

constexpr const char* kHead = "lm_head";

std::string last_part(const std::string& name) { return name.substr(name.rfind('.') + 1); }

struct NamedDense {
  std::string name;
  Dense* layer;
};

std::vector<NamedDense> dense_layers(Module& model) {
  std::vector<NamedDense> layers;
  model.visit([&](const std::string& name, Module& part) {
    if (auto* dense = dynamic_cast<Dense*>(&part)) layers.push_back({name, dense});
  });
  return layers;
}

}  // namespace

void add_lora(Module& model, const LoraOptions& options, ParameterInit& init) {
  std::vector<NamedDense> layers = dense_layers(model);
  std::set<std::string> names;
  for (const NamedDense& each : layers) names.insert(last_part(each.name));
  names.erase(kHead);
  for (const std::string& target : options.targets) {
    if (target == kHead) throw UsageError("[lora] the head cannot be changed");
    if (names.contains(target)) continue;
    throw UsageError("[lora] no dense layer is named '" + target + "'; there are " +
                     listed(std::vector<std::string>(names.begin(), names.end())));
  }
  std::erase_if(layers, [&](const NamedDense& each) {
    const std::string name = last_part(each.name);
    if (name == kHead) return true;
    if (options.targets.empty()) return false;
    return std::find(options.targets.begin(), options.targets.end(), name) ==
           options.targets.end();
  });
  if (layers.empty()) throw UsageError("[lora] the network has no dense layers to change");
  model.freeze();
  for (const NamedDense& each : layers) each.layer->adapt(options.change, init);
}

bool is_lora(const std::string& parameter) {
  return parameter.find(".lora_A.") != std::string::npos ||
         parameter.find(".lora_B.") != std::string::npos;
}

std::vector<NamedTensor> merged_parameters(Module& model) {
  std::vector<NamedTensor> parameters = model.parameters();
  std::erase_if(parameters, [](const NamedTensor& each) { return is_lora(each.name); });
  for (const NamedDense& each : dense_layers(model)) {
    if (!each.layer->is_adapted()) continue;
    const auto weight = std::find_if(
        parameters.begin(), parameters.end(),
        [&](const NamedTensor& named) { return named.name == each.name + ".weight"; });
    weight->tensor = each.layer->merged_weight();
  }
  return parameters;
}

}  // namespace tidemark
