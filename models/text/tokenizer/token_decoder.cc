#include "models/text/tokenizer/token_decoder.h"

#include <utility>

#include "models/text/tokenizer/decoder_stages.h"
#include "models/text/unicode.h"

namespace tidemark::tokenizers {
namespace {

// Each stage calls the next one.
constexpr size_t kMaxStages = 64;

void parse_into(const JsonNode& json, std::vector<std::unique_ptr<DecoderStage>>& stages) {
  if (stages.size() >= kMaxStages) json.fail("is one of more than 64 stages");
  const std::string type = json.text("type");
  if (type == "Sequence") {
    for (const JsonNode& step : json.list("decoders")) parse_into(step, stages);
  } else if (type == "ByteLevel") {
    stages.push_back(std::make_unique<ByteLevelStage>());
  } else if (type == "ByteFallback") {
    stages.push_back(std::make_unique<ByteFallbackStage>());
  } else if (type == "Fuse") {
    stages.push_back(std::make_unique<FuseStage>());
  } else if (type == "Replace") {
    stages.push_back(
        std::make_unique<ReplaceStage>(Pattern(json.at("pattern")), json.text("content")));
  } else if (type == "Strip") {
    const std::string content = json.text("content");
    if (count_code_points(content) != 1) json.at("content").fail("is not one character");
    stages.push_back(
        std::make_unique<StripStage>(content, json.count("start", 0), json.count("stop", 0)));
  } else if (type == "WordPiece") {
    stages.push_back(
        std::make_unique<WordPieceStage>(json.text("prefix"), json.flag("cleanup", true)));
  } else if (type == "Metaspace") {
    const bool drops =
        json.text("prepend_scheme", "always") != "never" && json.flag("add_prefix_space", true);
    stages.push_back(std::make_unique<MetaspaceStage>(json.text("replacement"), drops));
  } else if (type == "BPEDecoder") {
    stages.push_back(std::make_unique<WordEndStage>(json.text("suffix", "</w>")));
  } else {
    json.fail("has the type " + quote_text(type) + ", which is not supported");
  }
}

// Behind a stage that makes one piece of all, later stages see one piece: it is passed on in
// parts if they can bear it, else as a whole at the end.
DecoderStages finish(std::vector<std::unique_ptr<DecoderStage>> stages) {
  size_t fuse = 0;
  while (fuse < stages.size() && !stages[fuse]->fuses()) ++fuse;
  bool in_parts = true;
  for (size_t i = fuse + 1; i < stages.size(); ++i) in_parts &= stages[i]->take_parts();
  if (fuse < stages.size() && !in_parts) stages[fuse]->hold_all();
  DecoderStages finished;
  for (auto& stage : stages) finished.emplace_back(std::move(stage));
  return finished;
}

}  // namespace

DecoderStages parse_decoder(const JsonNode* json) {
  std::vector<std::unique_ptr<DecoderStage>> stages;
  if (json == nullptr) {
    stages.push_back(std::make_unique<WordPieceStage>("", false));
  } else {
    parse_into(*json, stages);
    check_growth(*json, "decoders");
  }
  return finish(std::move(stages));
}

DecoderStages byte_level_decoder() {
  std::vector<std::unique_ptr<DecoderStage>> stages;
  stages.push_back(std::make_unique<ByteLevelStage>());
  return finish(std::move(stages));
}

DecoderStages sentence_piece_decoder(bool strip_first_space) {
  std::vector<std::unique_ptr<DecoderStage>> stages;
  stages.push_back(std::make_unique<ReplaceStage>(Pattern(std::string("\u2581")), " "));
  stages.push_back(std::make_unique<ByteFallbackStage>());
  stages.push_back(std::make_unique<FuseStage>());
  if (strip_first_space) stages.push_back(std::make_unique<StripStage>(" ", 1, 0));
  return finish(std::move(stages));
}

Decoding::Decoding(const DecoderStages& stages) {
  for (const auto& stage : stages) stages_.push_back(stage->fresh());
}

void Decoding::take(size_t stage, std::string piece) {
  if (stage == stages_.size()) {
    text_ += piece;
    return;
  }
  stages_[stage]->take(std::move(piece), [this, stage](std::string passed) {
    take(stage + 1, std::move(passed));
  });
}

std::string Decoding::add(std::string piece) {
  take(0, std::move(piece));
  return std::exchange(text_, {});
}

std::string Decoding::end() {
  for (size_t i = 0; i < stages_.size(); ++i) {
    stages_[i]->end([this, i](std::string passed) { take(i + 1, std::move(passed)); });
  }
  return std::exchange(text_, {});
}

}  // namespace tidemark::tokenizers
