#include "models/checkpoint/peft.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "models/checkpoint/safetensors.h"
#include "models/checkpoint/weights.h"
#include "models/config_json.h"
#include "models/text/tokenizer/regex.h"
#include "runtime/core/errors.h"
#include "runtime/core/text_file.h"

namespace tidemark {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfig = "adapter_config.json";
constexpr const char* kWeights = "adapter_model.safetensors";

std::string name_in_file(const std::string& parameter) {
  return "base_model.model." + parameter;
}

std::vector<NamedTensor> changes_of(const Module& model) {
  std::vector<NamedTensor> changes = model.parameters();
  std::erase_if(changes, [](const NamedTensor& each) { return !is_lora(each.name); });
  return changes;
}

// Last parts of the names of the changed layers.
std::set<std::string> targets_of(Module& model) {
  std::set<std::string> targets;
  model.visit([&](const std::string& name, Module& part) {
    const auto* dense = dynamic_cast<const Dense*>(&part);
    if (dense && dense->is_adapted()) targets.insert(name.substr(name.rfind('.') + 1));
  });
  return targets;
}

// PEFT ignores case here.
bool is_all_linear(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text == "all-linear";
}

// As Python's re.fullmatch on a layer's name.
LayerPattern full_match(const std::string& text, const std::string& folder) {
  const std::string place = "'target_modules'";
  const std::string file = (fs::path(folder) / kConfig).string();
  const tokenizers::Regex alone(text, file, place);  // refuses what only parentheses complete
  const tokenizers::Regex whole("\\A(?:" + text + ")\\z", file, place);
  return {text, [whole](const std::string& layer) { return !whole.find_all(layer).empty(); }};
}

}  // namespace

void save_adapter(const std::string& folder, Module& model, const LoraOptions& options,
                  const std::string& base) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw DataError(folder, "cannot be made: " + error.message());
  const nlohmann::ordered_json targets =
      options.pattern ? nlohmann::ordered_json(options.pattern->text)
      : options.targets.empty()
          ? nlohmann::ordered_json(targets_of(model))
          : nlohmann::ordered_json(std::set(options.targets.begin(), options.targets.end()));
  const nlohmann::ordered_json config{{"peft_type", "LORA"},
                                      {"task_type", "CAUSAL_LM"},
                                      {"base_model_name_or_path", base},
                                      {"r", options.change.rank},
                                      {"lora_alpha", options.change.alpha},
                                      {"lora_dropout", options.change.dropout},
                                      {"target_modules", targets},
                                      {"bias", "none"},
                                      {"fan_in_fan_out", false},
                                      {"inference_mode", true}};
  // A kill between the two files must not leave options of one adapter beside values of
  // another.
  fs::remove(fs::path(folder) / kConfig, error);
  save_tensors((fs::path(folder) / kWeights).string(), changes_of(model), {{"format", "pt"}},
               [](const std::string& ours) { return std::vector{name_in_file(ours)}; });
  write_text_file((fs::path(folder) / kConfig).string(), config.dump(2) + "\n");
}

LoraOptions read_adapter_config(const std::string& folder) {
  const ConfigJson config = ConfigJson::read((fs::path(folder) / kConfig).string());
  config.require("peft_type", {"LORA"});
  config.require("bias", {"none"});
  for (const char* key :
       {"use_dora", "use_rslora", "use_qalora", "lora_bias", "fan_in_fan_out"}) {
    if (config.flag(key).value_or(false)) config.fail(key, "must be false");
  }
  for (const char* key : {"rank_pattern", "alpha_pattern"}) {
    const std::optional<ConfigJson> pattern = config.object(key);
    if (pattern && !pattern->is_empty()) config.fail(key, "must be empty");
  }
  for (const char* key :
       {"modules_to_save", "layers_to_transform", "exclude_modules", "layer_replication",
        "target_parameters", "trainable_token_indices", "alora_invocation_tokens"}) {
    if (config.has(key)) config.fail(key, "must be null");
  }
  // Others change the weights of the network itself.
  if (config.is_text("init_lora_weights")) config.require("init_lora_weights", {"gaussian"});
  LoraOptions options{.change = {.rank = config.size("r"),
                                 .alpha = config.number("lora_alpha", 8),
                                 .dropout = config.share("lora_dropout", 0)}};
  if (!config.is_text("target_modules")) {
    options.targets = config.texts("target_modules");
    if (options.targets.empty()) config.fail("target_modules", "is empty");
    return options;
  }
  const std::string text = config.text("target_modules");
  if (!is_all_linear(text)) options.pattern = full_match(text, folder);
  return options;
}

void load_adapter(const std::string& folder, Module& model) {
  SafetensorsFile file((fs::path(folder) / kWeights).string());
  load_tensors(
      changes_of(model), file,
      {.names = [](const std::string& ours) { return std::vector{name_in_file(ours)}; },
       .finite = true});
}

}  // namespace tidemark
