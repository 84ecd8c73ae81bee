// Tokenizer::read and parse: a tokenizer.json to TokenizerParts.
#include <utility>

#include "models/text/tokenizer/json_node.h"
#include "models/text/tokenizer/tokenizer.h"
#include "models/text/tokenizer/tokenizer_parts.h"
#include "models/text/unicode.h"
#include "runtime/core/errors.h"
#include "runtime/core/located_json.h"
#include "runtime/core/text_file.h"

namespace tidemark {
namespace tokenizers {
namespace {

void read_vocabulary(const JsonNode& vocabulary, PieceTable& pieces) {
  if (!vocabulary.value().is_object()) vocabulary.fail("is not an object");
  for (const auto& [piece, id] : vocabulary.value().items()) {
    const auto node = [&, &name = piece, &value = id] {
      return JsonNode(value, vocabulary.file(),
                      vocabulary.place() + '[' + quote_text(name) + ']');
    };
    const int32_t number = node().id();
    if (!pieces.add(piece, number)) {
      node().fail("has the id " + std::to_string(number) + ", like " +
                  quote_text(*pieces.piece(number)));
    }
  }
}

std::optional<int32_t> read_unknown(const JsonNode& model, const PieceTable& pieces) {
  if (!model.has("unk_token")) return std::nullopt;
  const JsonNode unknown = model.at("unk_token");
  const auto id = pieces.find(unknown.text());
  if (!id)
    unknown.fail("is " + quote_text(unknown.text()) + ", which is not in the vocabulary");
  return id;
}

// "a b" or ["a", "b"].
std::pair<std::string, std::string> read_pair(const JsonNode& merge) {
  if (merge.value().is_array()) {
    const std::vector<JsonNode> both = merge.list();
    if (both.size() != 2) merge.fail("has not two pieces");
    return {both[0].text(), both[1].text()};
  }
  const std::string text = merge.text();
  const size_t space = text.find(' ');
  if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
    merge.fail("is " + quote_text(text) + ", not two pieces with a space between them");
  }
  return {text.substr(0, space), text.substr(space + 1)};
}

// For what is put before or behind each piece.
std::string short_text(const JsonNode& json, const std::string& key, const char* otherwise) {
  constexpr size_t kMost = 64;
  std::string text = json.text(key, otherwise);
  if (text.size() > kMost) json.at(key).fail("has more than 64 bytes");
  return text;
}

std::unique_ptr<const SubwordModel> read_pair_merges(const JsonNode& model,
                                                     const PieceTable& pieces) {
  if (model.has("dropout") && model.value()["dropout"] != 0.0) {
    model.at("dropout").fail("is not 0; random merges are not supported");
  }
  PairMerges::Options options;
  options.unknown = read_unknown(model, pieces);
  options.fuse_unknown = model.flag("fuse_unk", false);
  options.byte_fallback = model.flag("byte_fallback", false);
  options.ignore_merges = model.flag("ignore_merges", false);
  options.continuation = short_text(model, "continuing_subword_prefix", "");
  options.word_end = short_text(model, "end_of_word_suffix", "");
  const size_t prefix = options.continuation.size();
  auto made = std::make_unique<PairMerges>(pieces, std::move(options));

  const JsonNode merges = model.at("merges");
  if (!merges.value().is_array()) merges.fail("is not an array");
  int64_t rank = 0;
  for (const nlohmann::json& value : merges.value()) {
    const JsonNode merge(value, merges.file(),
                         merges.place() + '[' + std::to_string(rank) + ']');
    const auto [left, right] = read_pair(merge);
    const auto known = [&](const std::string& piece) {
      const auto id = pieces.find(piece);
      if (!id) merge.fail("needs " + quote_text(piece) + ", which is not in the vocabulary");
      return *id;
    };
    if (right.size() < prefix) merge.fail("continues without the prefix of continuations");
    const int32_t left_id = known(left);
    const int32_t right_id = known(right);
    made->add_merge(left_id, right_id, rank++, known(left + right.substr(prefix)));
  }
  return made;
}

std::unique_ptr<const SubwordModel> read_word_piece(const JsonNode& model,
                                                    const PieceTable& pieces) {
  const auto unknown = read_unknown(model, pieces);
  if (!unknown) model.fail("has no unk_token");
  // A word takes time with the square of its length.
  constexpr int64_t kMostCharacters = 1000;
  const int64_t most = model.count("max_input_chars_per_word", 100);
  if (most > kMostCharacters) model.at("max_input_chars_per_word").fail("is above 1000");
  return std::make_unique<LongestPieces>(
      pieces,
      LongestPieces::Options{*unknown, short_text(model, "continuing_subword_prefix", "##"),
                             static_cast<size_t>(most)});
}

// Older files do not name the type.
std::string model_type(const JsonNode& model) {
  if (model.has("type")) return model.text("type");
  if (model.has("merges")) return "BPE";
  return model.has("max_input_chars_per_word") ? "WordPiece" : "";
}

void read_added(const JsonNode& json, TokenizerParts& parts) {
  AddedToken token;
  token.id = json.at("id").id();
  token.text = json.text("content");
  if (token.text.empty()) json.fail("has no content");
  token.special = json.flag("special", false);
  token.left_strip = json.flag("lstrip", false);
  token.right_strip = json.flag("rstrip", false);
  token.single_word = json.flag("single_word", false);
  token.normalized = json.flag("normalized", !token.special);
  const auto in_model = parts.model_pieces.find(token.text);
  const std::string about = quote_text(token.text) + " the id " + std::to_string(token.id);
  if (in_model && *in_model != token.id) {
    json.fail("gives " + about + ", but the model " + std::to_string(*in_model));
  }
  if (!in_model) {
    if (const std::string* const other = parts.piece(token.id)) {
      json.fail("gives " + about + ", which " + quote_text(*other) + " has");
    }
    if (!parts.added_pieces.add(token.text, token.id)) json.fail("gives " + about + " as well");
  }
  if (!token.normalized) {
    parts.in_text.add(std::move(token));
    return;
  }
  if (parts.normalizer) {
    token.text = parts.normalizer(token.text);
    parts.normalized_pieces.emplace(token.id, token.text);
  }
  if (!token.text.empty()) parts.in_normalized.add(std::move(token));
}

void read_parts(const JsonNode& root, TokenizerParts& parts) {
  const JsonNode model = root.at("model");
  const std::string type = model_type(model);
  if (type != "BPE" && type != "WordPiece") {
    model.fail("has the type " + quote_text(type) + "; BPE and WordPiece are supported");
  }
  read_vocabulary(model.at("vocab"), parts.model_pieces);
  parts.model = type == "BPE" ? read_pair_merges(model, parts.model_pieces)
                              : read_word_piece(model, parts.model_pieces);
  if (root.has("normalizer")) parts.normalizer = parse_normalizer(root.at("normalizer"));
  if (root.has("pre_tokenizer")) {
    parts.pre_tokenizer = parse_pre_tokenizer(root.at("pre_tokenizer"));
  }
  if (root.has("added_tokens")) {
    for (const JsonNode& token : root.list("added_tokens")) read_added(token, parts);
  }
  if (root.has("post_processor")) {
    parts.sequence = parse_template(root.at("post_processor"),
                                    [&](int32_t id) { return parts.piece(id) != nullptr; });
  }
  if (root.has("decoder")) {
    const JsonNode decoder = root.at("decoder");
    parts.decoder = parse_decoder(&decoder);
  } else {
    parts.decoder = parse_decoder(nullptr);
  }
}

}  // namespace
}  // namespace tokenizers

Tokenizer Tokenizer::parse(const std::string& name, std::string_view text) {
  const auto json = parse_located<nlohmann::json>(name, text);
  auto parts = std::make_shared<tokenizers::TokenizerParts>();
  tokenizers::read_parts({json, name}, *parts);
  return Tokenizer(std::move(parts));
}

Tokenizer Tokenizer::read(const std::string& path) { return parse(path, read_text_file(path)); }

}  // namespace tidemark
