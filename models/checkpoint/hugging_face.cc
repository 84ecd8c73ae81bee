#include "models/checkpoint/hugging_face.h"

#include <string_view>

namespace tidemark {
namespace {

// The name with `end` replaced, or empty if it ends otherwise.
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

}  // namespace

WeightNames hugging_face_names(const SafetensorsFile& file) {
  return [&file](const std::string& ours) -> std::vector<std::string> {
    for (std::string& name : other_names(ours)) {
      if (file.find(name) != nullptr) return {std::move(name)};
    }
    return {ours};
  };
}

}  // namespace tidemark
