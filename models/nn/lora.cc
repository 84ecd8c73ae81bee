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

// Whether the options name a layer that is not the head.
bool is_named(const LoraOptions& options, const std::string& layer) {
  if (last_part(layer) == kHead) return false;
  if (options.pattern) return options.pattern->matches(layer);
  return options.targets.empty() ||
         std::any_of(options.targets.begin(), options.targets.end(),
                     [&](const std::string& target) { return names_layer(target, layer); });
}

void check_targets(const LoraOptions& options, const std::vector<NamedDense>& layers) {
  std::set<std::string> names;
  for (const NamedDense& each : layers) names.insert(last_part(each.name));
  const auto check = [&](const std::string& target, const auto& names_one) {
    bool found = false;
    for (const NamedDense& each : layers) {
      if (!names_one(each.name)) continue;
      if (last_part(each.name) == kHead) throw UsageError("[lora] the head cannot be changed");
      found = true;
    }
    names.erase(kHead);
    if (found) return;
    throw UsageError("[lora] no dense layer is named '" + target + "'; there are " +
                     listed(std::vector<std::string>(names.begin(), names.end())));
  };
  if (options.pattern) return check(options.pattern->text, options.pattern->matches);
  for (const std::string& target : options.targets) {
    if (target == kHead) throw UsageError("[lora] the head cannot be changed");
    check(target, [&](const std::string& layer) { return names_layer(target, layer); });
  }
}

}  // namespace

void add_lora(Module& model, const LoraOptions& options, ParameterInit& init) {
  std::vector<NamedDense> layers = dense_layers(model);
  check_targets(options, layers);
  std::erase_if(layers, [&](const NamedDense& each) { return !is_named(options, each.name); });
  if (layers.empty()) throw UsageError("[lora] the network has no dense layers to change");
  model.freeze();
  for (const NamedDense& each : layers) each.layer->adapt(options.change, init);
}

bool is_lora(const std::string& parameter) {
  return parameter.find(".lora_A.") != std::string::npos ||
         parameter.find(".lora_B.") != std::string::npos;
}

}  // namespace tidemark
