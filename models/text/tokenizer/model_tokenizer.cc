#include "models/text/tokenizer/model_tokenizer.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "models/checkpoint/gguf.h"
#include "models/text/tokenizer/json_node.h"
#include "models/text/tokenizer/tokenizer_gguf.h"
#include "runtime/core/errors.h"
#include "runtime/core/located_json.h"
#include "runtime/core/text_file.h"

namespace tidemark {
namespace {

namespace fs = std::filesystem;

constexpr Bytes kMaxModelConfig{1 << 20};

// What both kinds of files have told, completed.
ModelTokenizer complete(ModelTokenizer model, std::optional<int32_t> pad) {
  const std::vector<int32_t> alone = model.tokenizer.encode("a", {.add_special_tokens = false});
  const std::vector<int32_t> whole = model.tokenizer.encode("a");
  if (whole.size() > alone.size() &&
      std::equal(alone.begin(), alone.end(), whole.begin() + 1)) {
    model.begin_of_text = whole.front();
  }
  if (!model.end_of_text && !model.stops.empty()) model.end_of_text = *model.stops.begin();
  if (model.end_of_text) model.stops.insert(*model.end_of_text);
  if (model.chat) {
    if (const auto id = model.tokenizer.find(model.chat->turn_end())) model.stops.insert(*id);
  }
  model.pad = pad.value_or(model.end_of_text.value_or(0));
  return model;
}

template <class Make>
void try_chat(ModelTokenizer& model, const Make& make) {
  try {
    model.chat = make();
  } catch (const DataError& error) {
    model.chat_fault = error.what();
  }
}

// One of a folder's JSON files; null if it is not there.
nlohmann::json read_json_beside(const fs::path& path) {
  std::error_code missing;
  if (!fs::exists(path, missing)) return nlohmann::json::object();
  return parse_located<nlohmann::json>(path.string(),
                                       read_text_file(path.string(), kMaxModelConfig));
}

ModelTokenizer open_folder(const fs::path& folder, const fs::path& file) {
  ModelTokenizer model{Tokenizer::read(file.string()), {}, {}, {}, {}, {}};
  const std::string config_name = (folder / "tokenizer_config.json").string();
  const nlohmann::json config_json = read_json_beside(config_name);
  const tokenizers::JsonNode config(config_json, config_name);
  const auto id_of = [&](const char* key) {
    const std::string token = config.token(key);
    return token.empty() ? std::nullopt : model.tokenizer.find(token);
  };
  model.end_of_text = id_of("eos_token");
  for (const char* name : {"generation_config.json", "config.json"}) {
    const std::string path = (folder / name).string();
    const nlohmann::json json = read_json_beside(path);
    const tokenizers::JsonNode node(json, path);
    if (!node.has("eos_token_id")) continue;
    const tokenizers::JsonNode ids = node.at("eos_token_id");
    const auto each =
        ids.value().is_array() ? ids.list() : std::vector<tokenizers::JsonNode>{ids};
    for (const tokenizers::JsonNode& id : each) {
      model.stops.insert(id.id());
      if (!model.end_of_text) model.end_of_text = id.id();
    }
  }
  std::error_code missing;
  if (config.has("chat_template") || fs::exists(folder / "chat_template.jinja", missing)) {
    try_chat(model, [&] { return ChatTemplate::read(config_name); });
  }
  const auto pad = id_of("pad_token");
  return complete(std::move(model), pad);
}

ModelTokenizer open_gguf(const std::string& path) {
  constexpr const char* kTemplate = "tokenizer.chat_template";
  GgufFile file(path);
  const GgufVocabulary from = read_gguf_vocabulary(file);
  ModelTokenizer model{
      tokenizer_from_gguf(path, from), {}, {}, {}, from.eos_token_id, from.stops};
  if (file.has(kTemplate)) {
    const auto piece = [&](std::optional<int32_t> of) {
      return of ? model.tokenizer.piece(*of).value_or("") : std::string();
    };
    try_chat(model, [&] {
      return ChatTemplate::recognise(file.text(kTemplate), path, piece(from.bos_token_id),
                                     piece(from.eos_token_id));
    });
  }
  return complete(std::move(model), from.padding_token_id);
}

}  // namespace

ModelTokenizer open_tokenizer(const std::string& path) {
  std::error_code missing;
  const fs::path given(path);
  if (fs::is_directory(given, missing)) {
    const fs::path file = given / "tokenizer.json";
    if (!fs::exists(file, missing)) {
      throw DataError(path,
                      "has no tokenizer.json. Other forms (tokenizer.model, vocab.json) are "
                      "not read: save_pretrained of transformers writes this one");
    }
    return open_folder(given, file);
  }
  if (given.extension() == ".gguf") return open_gguf(path);
  return open_folder(given.parent_path(), given);
}

}  // namespace tidemark
