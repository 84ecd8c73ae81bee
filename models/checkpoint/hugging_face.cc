#include "models/checkpoint/hugging_face.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "models/config_json.h"

namespace tidemark {
namespace {

// The name with `end` replaced, or an empty string if the name ends otherwise.
std::string with_end(const std::string& name, std::string_view end, std::string_view by) {
  if (!name.ends_with(end)) return {};
  return name.substr(0, name.size() - end.size()) + std::string(by);
}

std::vector<std::string> other_names(const std::string& name) {
  std::vector<std::string> names{name};
  for (std::string& old :
       std::vector<std::string>{with_end(name, "LayerNorm.weight", "LayerNorm.gamma"),
                                with_end(name, "LayerNorm.bias", "LayerNorm.beta"),
                                with_end(name, "predictions.bias", "predictions.decoder.bias"),
                                with_end(name, "lm_head.bias", "lm_head.decoder.bias")}) {
    if (!old.empty()) names.push_back(std::move(old));
  }
  const size_t count = names.size();
  for (const std::string_view prefix : {"bert.", "roberta.", "transformer."}) {
    if (!name.starts_with(prefix)) continue;
    for (size_t i = 0; i < count; ++i) names.push_back(names[i].substr(prefix.size()));
  }
  return names;
}

using Json = nlohmann::json;

BertOptions bert_config(const ConfigJson& config, bool roberta) {
  config.require("hidden_act", {"gelu"});
  config.require("position_embedding_type", {"absolute"});
  config.require_divisor("num_attention_heads", "hidden_size");
  BertOptions options = bert_options(roberta ? "xlm-roberta-base" : "bert-base");
  options.vocabulary = config.size("vocab_size");
  options.positions = config.size("max_position_embeddings");
  options.segments = config.size("type_vocab_size");
  options.layers = config.layers("num_hidden_layers");
  options.width = config.size("hidden_size");
  options.heads = config.size("num_attention_heads");
  options.inner = config.size("intermediate_size");
  options.norm_eps = config.eps("layer_norm_eps", options.norm_eps);
  if (options.longest() < 1) config.fail("max_position_embeddings", "leaves no positions");
  return options;
}

Gpt2Options gpt2_config(const ConfigJson& config) {
  config.require("activation_function", {"gelu_new", "gelu_pytorch_tanh"});
  config.require_divisor("n_head", "n_embd");
  Gpt2Options options;
  options.vocabulary = config.size("vocab_size");
  options.positions = config.size("n_positions");
  options.layers = config.layers("n_layer");
  options.width = config.size("n_embd");
  options.heads = config.size("n_head");
  options.norm_eps = config.eps("layer_norm_epsilon", options.norm_eps);
  if (config.has("n_inner") && config.size("n_inner") != 4 * options.width) {
    config.fail("n_inner", "must be four times 'n_embd'");
  }
  return options;
}

// The number behind `before` in `name`, such as in "bert.encoder.layer.11.output.dense.weight".
std::optional<int64_t> number_behind(std::string_view name, std::string_view before) {
  size_t at = name.find(before);
  if (at == std::string_view::npos || (at > 0 && name[at - 1] != '.')) return std::nullopt;
  name.remove_prefix(at + before.size());
  int64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end == name.data() + name.size() || *end != '.') {
    return std::nullopt;
  }
  return number;
}

TextNetworkOptions network_in(const ConfigJson& config) {
  const std::string type = config.text("model_type");
  if (type == "gpt2") return gpt2_config(config);
  if (type == "bert") return bert_config(config, false);
  if (type == "roberta" || type == "xlm-roberta") return bert_config(config, true);
  config.fail("model_type",
              "is '" + type + "'; supported are bert, roberta, xlm-roberta and gpt2");
}

}  // namespace

TextNetworkOptions read_hugging_face_config(const std::string& path) {
  return network_in(ConfigJson::read(path));
}

TextNetworkOptions parse_hugging_face_config(const std::string& json, const std::string& from) {
  return network_in(ConfigJson(json, from));
}

std::string hugging_face_config(const TextNetworkOptions& options) {
  if (const auto* gpt2 = std::get_if<Gpt2Options>(&options)) {
    return Json{{"model_type", "gpt2"},
                {"vocab_size", gpt2->vocabulary},
                {"n_positions", gpt2->positions},
                {"n_layer", gpt2->layers},
                {"n_embd", gpt2->width},
                {"n_head", gpt2->heads},
                {"layer_norm_epsilon", gpt2->norm_eps}}
        .dump();
  }
  const auto& bert = std::get<BertOptions>(options);
  return Json{{"model_type", bert.roberta_names ? "xlm-roberta" : "bert"},
              {"vocab_size", bert.vocabulary},
              {"max_position_embeddings", bert.positions},
              {"type_vocab_size", bert.segments},
              {"num_hidden_layers", bert.layers},
              {"hidden_size", bert.width},
              {"num_attention_heads", bert.heads},
              {"intermediate_size", bert.inner},
              {"layer_norm_eps", bert.norm_eps}}
      .dump();
}

std::optional<bool> read_lower_case(const std::string& path) {
  return ConfigJson::read(path).flag("do_lower_case");
}

TextNetworkSizes sizes_of(const TextNetworkOptions& options) {
  if (const auto* gpt2 = std::get_if<Gpt2Options>(&options)) {
    return {gpt2->layers, gpt2->width, gpt2->heads, 4 * gpt2->width, gpt2->positions};
  }
  const auto& bert = std::get<BertOptions>(options);
  return {bert.layers, bert.width, bert.heads, bert.inner, bert.positions};
}

TextNetworkSizes sizes_in(const SafetensorsFile& file) {
  TextNetworkSizes sizes;
  for (const SafetensorsEntry& entry : file.entries()) {
    const std::string_view name = entry.name;
    for (const std::string_view layers : {"encoder.layer.", "h."}) {
      if (const auto layer = number_behind(name, layers)) {
        sizes.layers = std::max(sizes.layers, *layer + 1);
      }
    }
    if (entry.shape.rank() != 2) continue;
    const auto ends = [&](std::string_view bert, std::string_view gpt2) {
      return name.ends_with(bert) || name == gpt2 || name.ends_with('.' + std::string(gpt2));
    };
    if (ends("embeddings.position_embeddings.weight", "wpe.weight")) {
      sizes.positions = entry.shape[0];
      sizes.width = entry.shape[1];
    }
    if (name.ends_with("layer.0.intermediate.dense.weight")) sizes.inner = entry.shape[0];
    if (name.ends_with("h.0.mlp.c_fc.weight")) sizes.inner = entry.shape[1];
  }
  return sizes;
}

std::string difference(const TextNetworkSizes& ours, const TextNetworkSizes& theirs,
                       const std::string& name) {
  struct Size {
    int64_t ours, theirs;
    const char *before, *after;
  };
  std::string here, there;
  for (const Size& size : {Size{ours.layers, theirs.layers, "", " layers"},
                           Size{ours.width, theirs.width, "hidden size ", ""},
                           Size{ours.heads, theirs.heads, "", " heads"},
                           Size{ours.inner, theirs.inner, "intermediate size ", ""},
                           Size{ours.positions, theirs.positions, "", " positions"}}) {
    if (size.ours == size.theirs || size.ours == 0 || size.theirs == 0) continue;
    const std::string comma = here.empty() ? "" : ", ";
    here += comma + size.before + std::to_string(size.ours) + size.after;
    there += comma + size.before + std::to_string(size.theirs) + size.after;
  }
  return here.empty() ? "" : here + "; " + name + " has " + there;
}

WeightNames hugging_face_names(const SafetensorsFile& file) {
  return [&file](const std::string& ours) -> std::vector<std::string> {
    for (std::string& name : other_names(ours)) {
      if (file.find(name) != nullptr) return {std::move(name)};
    }
    return {ours};
  };
}

}  // namespace tidemark
