#include "models/text/tokenizer/tokenizer_files.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>
#include <vector>

#include "models/text/tokenizer/model_tokenizer.h"
#include "models/text/tokenizer/pre_tokenizer.h"
#include "models/text/unicode.h"
#include "runtime/core/errors.h"

namespace tidemark {
namespace {

using OrderedJson = nlohmann::ordered_json;

enum TypeOfToken { kNormalToken = 1, kUnknownToken = 2, kControlToken = 3, kUsersToken = 4 };
constexpr const char* kBlankMark = "\u2581";  // SentencePiece's mark for a space

class TokenizerWriter {
 public:
  explicit TokenizerWriter(const GgufVocabulary& from)
      : from_(from), is_byte_level_(from.model == "gpt2") {}

  OrderedJson run() const {
    return {{"version", "1.0"},
            {"truncation", nullptr},
            {"padding", nullptr},
            {"added_tokens", added_tokens()},
            {"normalizer", normalizer()},
            {"pre_tokenizer", pre_tokenizer()},
            {"post_processor", post_processor()},
            {"decoder", decoder()},
            {"model", model()}};
  }

 private:
  int32_t type(size_t id) const {
    return from_.token_type.empty() ? int32_t{kNormalToken} : from_.token_type[id];
  }
  static OrderedJson sequence(const char* name, OrderedJson steps) {
    return {{"type", "Sequence"}, {name, std::move(steps)}};
  }

  OrderedJson added_tokens() const {
    OrderedJson added = OrderedJson::array();
    for (size_t id = 0; id < from_.tokens.size(); ++id) {
      const bool special = type(id) == kControlToken || type(id) == kUnknownToken;
      if (from_.tokens[id].empty() || (!special && type(id) != kUsersToken)) continue;
      added.push_back({{"id", id},
                       {"content", from_.tokens[id]},
                       {"single_word", false},
                       {"lstrip", false},
                       {"rstrip", false},
                       {"normalized", false},
                       {"special", special}});
    }
    return added;
  }

  OrderedJson normalizer() const {
    if (is_byte_level_) {
      return from_.pre == "qwen2" ? OrderedJson{{"type", "NFC"}} : OrderedJson();
    }
    OrderedJson steps = OrderedJson::array();
    if (from_.has_space_prefix())
      steps.push_back({{"type", "Prepend"}, {"prepend", kBlankMark}});
    steps.push_back(
        {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kBlankMark}});
    return sequence("normalizers", steps);
  }

  OrderedJson pre_tokenizer() const {
    if (!is_byte_level_) return {};
    const auto bytes = [](bool use_regex) -> OrderedJson {
      return {{"type", "ByteLevel"},
              {"add_prefix_space", false},
              {"trim_offsets", true},
              {"use_regex", use_regex}};
    };
    const auto words = [&](const char* pattern) {
      const OrderedJson split{{"type", "Split"},
                              {"pattern", {{"Regex", pattern}}},
                              {"behavior", "Isolated"},
                              {"invert", false}};
      return sequence("pretokenizers", OrderedJson::array({split, bytes(false)}));
    };
    if (from_.pre == "llama-bpe") return words(tokenizers::kLlama3Words);
    if (from_.pre == "qwen2") return words(tokenizers::kQwen2Words);
    if (from_.pre != "smollm") return bytes(true);
    const OrderedJson digits{{"type", "Digits"}, {"individual_digits", true}};
    return sequence("pretokenizers", OrderedJson::array({digits, bytes(true)}));
  }

  OrderedJson post_processor() const {
    OrderedJson before = OrderedJson::array(), after = OrderedJson::array();
    OrderedJson special = OrderedJson::object();
    const auto add = [&](OrderedJson& to, std::optional<int32_t> id) {
      if (!id) return;
      const std::string& piece = from_.tokens[static_cast<size_t>(*id)];
      to.push_back({{"SpecialToken", {{"id", piece}, {"type_id", 0}}}});
      special[piece] = {{"id", piece},
                        {"ids", OrderedJson::array({*id})},
                        {"tokens", OrderedJson::array({piece})}};
    };
    if (from_.begins()) add(before, from_.bos_token_id);
    if (from_.ends()) add(after, from_.eos_token_id);
    if (special.empty()) return {};
    OrderedJson single = before, pair = OrderedJson::array();
    single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
    single.insert(single.end(), after.begin(), after.end());
    for (const int64_t which : {0, 1}) {
      pair.insert(pair.end(), before.begin(), before.end());
      pair.push_back({{"Sequence", {{"id", which == 0 ? "A" : "B"}, {"type_id", which}}}});
      pair.insert(pair.end(), after.begin(), after.end());
    }
    return {{"type", "TemplateProcessing"},
            {"single", single},
            {"pair", pair},
            {"special_tokens", special}};
  }

  OrderedJson decoder() const {
    if (is_byte_level_) {
      return {{"type", "ByteLevel"},
              {"add_prefix_space", true},
              {"trim_offsets", true},
              {"use_regex", true}};
    }
    OrderedJson steps = OrderedJson::array();
    steps.push_back(
        {{"type", "Replace"}, {"pattern", {{"String", kBlankMark}}}, {"content", " "}});
    steps.push_back({{"type", "ByteFallback"}});
    steps.push_back({{"type", "Fuse"}});
    if (from_.has_space_prefix()) {
      steps.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
    }
    return sequence("decoders", steps);
  }

  OrderedJson model() const {
    OrderedJson vocabulary = OrderedJson::object();
    auto& pieces = vocabulary.get_ref<OrderedJson::object_t&>();
    for (size_t id = 0; id < from_.tokens.size(); ++id) {
      pieces.push_back({from_.tokens[id], id});  // appended: looking for it takes long
    }
    OrderedJson model{{"type", "BPE"}, {"dropout", nullptr}, {"unk_token", nullptr}};
    if (!is_byte_level_ && from_.unknown_token_id) {
      model["unk_token"] = from_.tokens[static_cast<size_t>(*from_.unknown_token_id)];
    }
    model["continuing_subword_prefix"] = nullptr;
    model["end_of_word_suffix"] = nullptr;
    model["fuse_unk"] = !is_byte_level_;
    model["byte_fallback"] = !is_byte_level_;
    model["ignore_merges"] = from_.pre == "llama-bpe";
    model["vocab"] = std::move(vocabulary);
    model["merges"] = is_byte_level_ ? written_merges() : merges_by_score();
    return model;
  }
  OrderedJson written_merges() const {
    OrderedJson merges = OrderedJson::array();
    for (const std::string& merge : from_.merges) {
      const size_t space = merge.find(' ');
      merges.push_back(OrderedJson::array({merge.substr(0, space), merge.substr(space + 1)}));
    }
    return merges;
  }
  // Every way to make a piece of two, the highest scores first.
  OrderedJson merges_by_score() const {
    std::unordered_map<std::string_view, int32_t> ids;
    for (size_t id = 0; id < from_.tokens.size(); ++id) {
      ids.emplace(from_.tokens[id], static_cast<int32_t>(id));
    }
    struct Merge {
      float score;
      int32_t left, right;
    };
    std::vector<Merge> merges;
    for (size_t id = 0; id < from_.tokens.size(); ++id) {
      if (type(id) != kNormalToken) continue;
      const std::string_view piece = from_.tokens[id];
      for (size_t at = 0; at < piece.size();) {
        next_code_point(piece, at);
        const auto left = ids.find(piece.substr(0, at)), right = ids.find(piece.substr(at));
        if (at < piece.size() && left != ids.end() && right != ids.end()) {
          merges.push_back({from_.scores[id], left->second, right->second});
        }
      }
    }
    std::stable_sort(merges.begin(), merges.end(), [](const Merge& a, const Merge& b) {
      return std::tie(b.score, a.left, a.right) < std::tie(a.score, b.left, b.right);
    });
    OrderedJson pairs = OrderedJson::array();
    for (const Merge& merge : merges) {
      pairs.push_back(OrderedJson::array({from_.tokens[static_cast<size_t>(merge.left)],
                                          from_.tokens[static_cast<size_t>(merge.right)]}));
    }
    return pairs;
  }

  const GgufVocabulary& from_;
  const bool is_byte_level_;
};

}  // namespace

std::string tokenizer_json(const std::string& file, const GgufVocabulary& vocabulary) {
  for (const std::string& piece : vocabulary.tokens) {
    if (!is_utf8(piece))
      throw DataError(file, "tokenizer.ggml.tokens has a text that is not UTF-8");
  }
  return TokenizerWriter(vocabulary).run().dump(1) + "\n";
}

std::vector<NamedText> gguf_tokenizer_files(const std::string& gguf) {
  const ModelTokenizer model = open_tokenizer(gguf);  // checks the vocabulary
  GgufFile file(gguf);
  const GgufVocabulary vocabulary = read_gguf_vocabulary(file);
  std::string tokenizer = tokenizer_json(gguf, vocabulary);

  OrderedJson config{{"tokenizer_class", "PreTrainedTokenizerFast"},
                     {"clean_up_tokenization_spaces", false}};
  OrderedJson generation = OrderedJson::object();
  const auto name = [&](const char* key, std::optional<int32_t> id) {
    if (!id) return;
    config[std::string(key) + "_token"] = model.tokenizer.piece(*id).value_or("");
    generation[std::string(key) + "_token_id"] = *id;
  };
  name("bos", vocabulary.bos_token_id);
  name("eos", model.end_of_text);
  name("pad", vocabulary.padding_token_id);
  if (vocabulary.unknown_token_id) {
    config["unk_token"] = model.tokenizer.piece(*vocabulary.unknown_token_id).value_or("");
  }
  if (model.stops.size() > 1) {
    generation["eos_token_id"] = std::vector<int32_t>(model.stops.begin(), model.stops.end());
  }
  constexpr const char* kTemplate = "tokenizer.chat_template";
  if (file.has(kTemplate)) {
    const std::string chat = file.text(kTemplate);
    if (!is_utf8(chat)) throw DataError(gguf, std::string(kTemplate) + " is not UTF-8");
    config["chat_template"] = chat;
  }
  return {{"tokenizer.json", std::move(tokenizer)},
          {"tokenizer_config.json", config.dump(2) + "\n"},
          {"generation_config.json", generation.dump(2) + "\n"}};
}

}  // namespace tidemark
