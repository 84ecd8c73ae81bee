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

// Whether a target is a layer's name or its last parts.
bool names_layer(const std::string& target, const std::string& layer) {
  return layer == target || layer.ends_with("." + target);
}

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
    if (std::any_of(layers.begin(), layers.end(),
                    [&](const NamedDense& each) { return names_layer(target, each.name); })) {
      continue;
    }
    throw UsageError("[lora] no dense layer is named '" + target + "'; there are " +
                     listed(std::vector<std::string>(names.begin(), names.end())));
  }
  std::erase_if(layers, [&](const NamedDense& each) {
    const std::string name = last_part(each.name);
    if (name == kHead) return true;
    if (options.targets.empty()) return false;
    return std::none_of(
        options.targets.begin(), options.targets.end(),
        [&](const std::string& target) { return names_layer(target, each.name); });
  });
  if (layers.empty()) throw UsageError("[lora] the network has no dense layers to change");
  model.freeze();
  for (const NamedDense& each : layers) each.layer->adapt(options.change, init);
}

bool is_lora(const std::string& parameter) {
  return parameter.find(".lora_A.") != std::string::npos ||
         parameter.find(".lora_B.") != std::string::npos;
}

}  // namespace tidemark
