#include "models/text/tokenizer/chat_template.h"

#include <array>
#include <filesystem>
#include <utility>

#include "models/text/tokenizer/json_node.h"
#include "runtime/core/errors.h"
#include "runtime/core/located_json.h"
#include "runtime/core/text_file.h"

namespace tidemark {
namespace {

constexpr Bytes kMaxConfig{1 << 20};

struct NamedTemplate {
  std::string_view name;
  ChatFamily family;
  std::string_view default_system = {};
};
constexpr std::array<NamedTemplate, 16> kNamed{{
    {"chatml", ChatFamily::kChatMl},
    {"smollm2", ChatFamily::kChatMl,
     "You are a helpful AI assistant named SmolLM, trained by Hugging Face"},
    {"qwen2", ChatFamily::kChatMl, "You are a helpful assistant."},
    {"qwen2.5", ChatFamily::kChatMl,
     "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."},
    {"llama-2", ChatFamily::kLlama2},
    {"llama-3", ChatFamily::kLlama3},
    {"llama-3.1", ChatFamily::kLlama31},
    {"mistral", ChatFamily::kMistral},
    {"mistral-v0.1", ChatFamily::kMistral},
    {"mistral-v0.3", ChatFamily::kMistral},
    {"mistral-nemo", ChatFamily::kMistral},
    {"mistral-large-2411", ChatFamily::kMistral},
    {"mistral-small-2501", ChatFamily::kMistral},
    {"mixtral", ChatFamily::kMistral},
    {"mixtral-8x22b", ChatFamily::kMistral},
    {"zephyr", ChatFamily::kZephyr},
}};

}  // namespace

ChatTemplate::ChatTemplate(ChatStyle style)
    : style_(std::move(style)),
      begin_(family() == Family::kLlama3 || family() == Family::kLlama31 ? "<|begin_of_text|>"
                                                                         : "<s>"),
      end_("</s>") {}

ChatTemplate ChatTemplate::named(std::string_view name) {
  for (const NamedTemplate& known : kNamed) {
    if (known.name == name) {
      return ChatTemplate({.family = known.family,
                           .default_system = std::string(known.default_system),
                           .mistral = find_mistral(name)});
    }
  }
  std::string all;
  for (const std::string& known : names()) all += (all.empty() ? "" : ", ") + known;
  throw UsageError("[chat_template] there is no '" + std::string(name) + "', only " + all);
}

std::vector<std::string> ChatTemplate::names() {
  std::vector<std::string> all;
  all.reserve(kNamed.size());
  for (const NamedTemplate& known : kNamed) all.emplace_back(known.name);
  return all;
}

std::string ChatTemplate::turn_end() const {
  if (family() == Family::kChatMl) return "<|im_end|>";
  const bool is_llama3 = family() == Family::kLlama3 || family() == Family::kLlama31;
  return is_llama3 ? "<|eot_id|>" : end_;
}

ChatTemplate ChatTemplate::recognise(std::string_view jinja, const std::string& from,
                                     const std::optional<std::string>& begin,
                                     const std::string& end) {
  ChatTemplate made(recognise_style(jinja, from));
  if (begin) made.begin_ = *begin;
  if (!end.empty()) made.end_ = end;
  return made;
}

ChatTemplate ChatTemplate::read(const std::string& path) {
  const auto json = parse_located<nlohmann::json>(path, read_text_file(path, kMaxConfig));
  const tokenizers::JsonNode config(json, path);
  const bool is_inside = config.has("chat_template");
  const std::string beside =
      (std::filesystem::path(path).parent_path() / "chat_template.jinja").string();
  const std::string begin = config.token("bos_token");
  const std::string end = config.token("eos_token");
  return is_inside ? recognise(config.text("chat_template"), path, begin, end)
                   : recognise(read_text_file(beside, kMaxConfig), beside, begin, end);
}

}  // namespace tidemark
