#include "models/text/tokenizer/chat_template.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "models/text/tokenizer/jinja_form.h"
#include "models/text/tokenizer/json_node.h"
#include "runtime/core/errors.h"
#include "runtime/core/located_json.h"
#include "runtime/core/text_file.h"

namespace tidemark {
namespace {

using Family = ChatTemplate::Family;

constexpr Bytes kMaxConfig{1 << 20};

struct NamedTemplate {
  std::string_view name;
  Family family;
  std::string_view default_system = {};
};
constexpr std::array<NamedTemplate, 9> kNamed{{
    {"chatml", Family::kChatMl},
    {"smollm2", Family::kChatMl,
     "You are a helpful AI assistant named SmolLM, trained by Hugging Face"},
    {"qwen2", Family::kChatMl, "You are a helpful assistant."},
    {"qwen2.5", Family::kChatMl,
     "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."},
    {"llama-2", Family::kLlama2},
    {"llama-3", Family::kLlama3},
    {"llama-3.1", Family::kLlama31},
    {"mistral", Family::kMistral},
    {"zephyr", Family::kZephyr},
}};

// Parts of a family's templates, in the form of jinja_form.h. The first family is taken whose
// `needed` parts are all there and whose `refused` ones are not.
struct Marks {
  Family family;
  std::vector<std::string> needed, refused;
};
const std::vector<Marks>& marks() {
  static const std::string kLlama3Turn =
      "'<|start_header_id|>'+message['role']+'<|end_header_id|>\n\n'+message['content']|trim"
      "+'<|eot_id|>'";
  static const std::string kDates = "'Cutting Knowledge Date: December 2023\n'";
  static const std::vector<Marks> kMarks{
      {Family::kChatMl,
       {"'<|im_start|>'+message['role']+'\n'+message['content']+'<|im_end|>'+'\n'",
        "'<|im_start|>assistant\n'"},
       {"<think>", "bos_token", "|trim", "strip("}},
      {Family::kLlama31, {kLlama3Turn, kDates, "'Today Date: '+date_string+'\n\n'"}, {}},
      {Family::kLlama3, {kLlama3Turn, "bos_token"}, {kDates}},
      {Family::kLlama2,
       {"bos_token+'[INST] '+content.strip()+' [/INST]'", "' '+content.strip()+' '+eos_token",
        "'<<SYS>>\n'+system_message+'\n<</SYS>>\n\n'+message['content']"},
       {}},
      {Family::kMistral,
       {"{{bos_token}}", "{{'[INST] '+message['content']+' [/INST]'}}",
        "{{message['content']+eos_token}}"},
       {"system_message"}},
      {Family::kZephyr,
       {"{{'<|user|>\n'+message['content']+eos_token}}\n",
        "{{'<|system|>\n'+message['content']+eos_token}}\n",
        "{{'<|assistant|>\n'+message['content']+eos_token}}\n", "{{'<|assistant|>'}}\n"},
       {"bos_token", "|trim"}},
  };
  return kMarks;
}

// The constant system message of a ChatML template; empty if it has none.
std::string default_system_of(const std::string& form) {
  const std::string open = tokenizers::kJinjaQuote + std::string("<|im_start|>system\n");
  const std::string close = "<|im_end|>\n";
  for (size_t at = form.find(open); at != std::string::npos; at = form.find(open, at + 1)) {
    const size_t begin = at + open.size();
    const size_t end = form.find(tokenizers::kJinjaQuote, begin);
    if (end == std::string::npos) break;
    const std::string message = form.substr(begin, end - begin);
    if (message.ends_with(close)) return message.substr(0, message.size() - close.size());
  }
  return {};
}

// "</s>" or {"content": "</s>", ...}
std::string read_token(const tokenizers::JsonNode& config, const std::string& key) {
  if (!config.has(key)) return {};
  const tokenizers::JsonNode node = config.at(key);
  return node.value().is_object() ? node.text("content") : node.text();
}

}  // namespace

ChatTemplate::ChatTemplate(Family family, std::string default_system)
    : family_(family),
      default_system_(std::move(default_system)),
      begin_(family == Family::kLlama3 || family == Family::kLlama31 ? "<|begin_of_text|>"
                                                                     : "<s>"),
      end_("</s>") {}

ChatTemplate ChatTemplate::named(std::string_view name) {
  for (const NamedTemplate& known : kNamed) {
    if (known.name == name) return {known.family, std::string(known.default_system)};
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
  if (family_ == Family::kChatMl) return "<|im_end|>";
  const bool is_llama3 = family_ == Family::kLlama3 || family_ == Family::kLlama31;
  return is_llama3 ? "<|eot_id|>" : end_;
}

ChatTemplate ChatTemplate::recognise(std::string_view jinja, const std::string& from,
                                     const std::string& begin, const std::string& end) {
  const std::string form = tokenizers::jinja_form(jinja);
  const auto has = [&](const std::string& part) { return tokenizers::has_part(form, part); };
  for (const Marks& family : marks()) {
    if (std::all_of(family.needed.begin(), family.needed.end(), has) &&
        std::none_of(family.refused.begin(), family.refused.end(), has)) {
      ChatTemplate made(family.family, family.family == Family::kChatMl
                                           ? default_system_of(form)
                                           : std::string());
      if (!begin.empty()) made.begin_ = begin;
      if (!end.empty()) made.end_ = end;
      return made;
    }
  }
  std::string all;
  for (const std::string& known : names()) all += (all.empty() ? "" : ", ") + known;
  throw DataError(
      from, "the chat template is of no known family (" + all + "); choose one by its name");
}

ChatTemplate ChatTemplate::read(const std::string& path) {
  const auto json = parse_located<nlohmann::json>(path, read_text_file(path, kMaxConfig));
  const tokenizers::JsonNode config(json, path);
  const bool is_inside = config.has("chat_template");
  const std::string beside =
      (std::filesystem::path(path).parent_path() / "chat_template.jinja").string();
  const std::string begin = read_token(config, "bos_token");
  const std::string end = read_token(config, "eos_token");
  return is_inside ? recognise(config.text("chat_template"), path, begin, end)
                   : recognise(read_text_file(beside, kMaxConfig), beside, begin, end);
}

}  // namespace tidemark
