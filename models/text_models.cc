#include "models/text_models.h"

#include <algorithm>

#include "models/bert.h"
#include "models/config_json.h"
#include "models/gpt2.h"
#include "models/llama.h"

namespace tidemark {
namespace {

const std::vector<TextFamily>& families() {
  static const std::vector<TextFamily> all{bert_family(), gpt2_family(), llama_family()};
  return all;
}

const std::vector<Named<TextModelInfo>>& table() {
  static const std::vector<Named<TextModelInfo>> entries = [] {
    std::vector<Named<TextModelInfo>> all;
    for (const TextFamily& family : families()) {
      all.insert(all.end(), family.models.begin(), family.models.end());
    }
    return all;
  }();
  return entries;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

TextModelInfo from_config(const ConfigJson& config) {
  const std::string type = config.text("model_type");
  std::vector<std::string> types;
  for (const TextFamily& family : families()) {
    if (contains(family.config_types, type)) return family.from_config(config);
    types.insert(types.end(), family.config_types.begin(), family.config_types.end());
  }
  config.fail("model_type", "is '" + type + "'; supported are " + listed(types, " and "));
}

}  // namespace

const std::vector<std::string>& text_model_names() {
  static const std::vector<std::string> names = names_of(table());
  return names;
}

bool is_text_model(const std::string& name) { return contains(text_model_names(), name); }

const TextModelInfo& text_model(const std::string& name) { return find_named(table(), name); }

TextModelInfo read_hugging_face_config(const std::string& path) {
  return from_config(ConfigJson::read(path));
}

TextModelInfo parse_hugging_face_config(const std::string& json, const std::string& from) {
  return from_config(ConfigJson(json, from));
}

}  // namespace tidemark
