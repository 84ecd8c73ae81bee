#include "models/text/tokenizer/sequence_template.h"

#include <utility>

namespace tidemark::tokenizers {
namespace {

using Kind = TemplatePart::Kind;
using IsKnown = std::function<bool(int32_t)>;

int32_t known_id(const JsonNode& json, const IsKnown& is_known) {
  const int32_t id = json.id();
  if (!is_known(id)) json.fail("is " + std::to_string(id) + ", which is no token");
  return id;
}

std::vector<TemplatePart> parse_parts(const JsonNode& json, const std::string& key,
                                      const IsKnown& is_known) {
  std::vector<TemplatePart> parts;
  for (const JsonNode& part : json.list(key)) {
    if (part.has("Sequence")) {
      const std::string name = part.at("Sequence").text("id");
      if (name != "A" && (name != "B" || key != "pair")) {
        part.fail("names the sequence " + quote_text(name));
      }
      const Kind kind = name == "A" ? Kind::kFirst : Kind::kSecond;
      for (const TemplatePart& before : parts) {
        if (before.kind == kind) part.fail("names the sequence " + quote_text(name) + " again");
      }
      parts.push_back({kind, {}});
    } else if (part.has("SpecialToken")) {
      const std::string name = part.at("SpecialToken").text("id");
      const JsonNode all = json.at("special_tokens");
      if (!all.has(name))
        part.fail("names " + quote_text(name) + ", not one of special_tokens");
      TemplatePart special{Kind::kSpecial, {}};
      for (const JsonNode& id : all.at(name).list("ids")) {
        special.ids.push_back(known_id(id, is_known));
      }
      parts.push_back(std::move(special));
    } else {
      part.fail("is neither a Sequence nor a SpecialToken");
    }
  }
  return parts;
}

// ["[SEP]", 102]
TemplatePart parse_token(const JsonNode& json, const IsKnown& is_known) {
  const std::vector<JsonNode> both = json.list();
  if (both.size() != 2) json.fail("is not a token and its id");
  return {Kind::kSpecial, {known_id(both[1], is_known)}};
}

}  // namespace

SequenceTemplate SequenceTemplate::around(std::optional<int32_t> before,
                                          std::optional<int32_t> after) {
  SequenceTemplate made{{}, {}};
  const auto append = [&](std::vector<TemplatePart>& parts, Kind sequence) {
    if (before) parts.push_back({Kind::kSpecial, {*before}});
    parts.push_back({sequence, {}});
    if (after) parts.push_back({Kind::kSpecial, {*after}});
  };
  append(made.single, Kind::kFirst);
  append(made.pair, Kind::kFirst);
  append(made.pair, Kind::kSecond);
  return made;
}

std::vector<int32_t> fill(const std::vector<TemplatePart>& parts, bool add_special,
                          const std::vector<int32_t>& first,
                          const std::vector<int32_t>& second) {
  std::vector<int32_t> ids;
  for (const TemplatePart& part : parts) {
    if (part.kind == Kind::kSpecial && !add_special) continue;
    const std::vector<int32_t>& from = part.kind == Kind::kSpecial ? part.ids
                                       : part.kind == Kind::kFirst ? first
                                                                   : second;
    ids.insert(ids.end(), from.begin(), from.end());
  }
  return ids;
}

SequenceTemplate parse_template(const JsonNode& json, const IsKnown& is_known) {
  const std::string type = json.text("type");
  if (type == "ByteLevel") return {};  // it moves offsets alone
  if (type == "TemplateProcessing") {
    return {parse_parts(json, "single", is_known), parse_parts(json, "pair", is_known)};
  }
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    const TemplatePart begin = parse_token(json.at("cls"), is_known);
    const TemplatePart end = parse_token(json.at("sep"), is_known);
    const TemplatePart first{Kind::kFirst, {}};
    const TemplatePart second{Kind::kSecond, {}};
    if (type == "BertProcessing") {
      return {{begin, first, end}, {begin, first, end, second, end}};
    }
    return {{begin, first, end}, {begin, first, end, end, second, end}};
  }
  if (type == "Sequence") {
    SequenceTemplate found;
    bool has_template = false;
    for (const JsonNode& step : json.list("processors")) {
      SequenceTemplate made = parse_template(step, is_known);
      if (step.text("type") == "ByteLevel") continue;
      if (std::exchange(has_template, true)) step.fail("is a second template, not supported");
      found = std::move(made);
    }
    return found;
  }
  json.fail("has the type " + quote_text(type) + ", which is not supported");
}

}  // namespace tidemark::tokenizers
