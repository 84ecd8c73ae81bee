// Where special tokens go around one sequence of ids, or two.
//
// Immutable once made; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/text/tokenizer/json_node.h"

namespace tidemark::tokenizers {

struct TemplatePart {
  enum class Kind { kFirst, kSecond, kSpecial } kind;
  std::vector<int32_t> ids;  // of kSpecial
};

struct SequenceTemplate {
  std::vector<TemplatePart> single{{TemplatePart::Kind::kFirst, {}}};
  std::vector<TemplatePart> pair{{TemplatePart::Kind::kFirst, {}},
                                 {TemplatePart::Kind::kSecond, {}}};

  // `before` and `after` are the ids around each sequence; nothing for none.
  static SequenceTemplate around(std::optional<int32_t> before, std::optional<int32_t> after);
};

// The ids of `first` and `second`, with special ones if `add_special`.
std::vector<int32_t> fill(const std::vector<TemplatePart>& parts, bool add_special,
                          const std::vector<int32_t>& first,
                          const std::vector<int32_t>& second);

// The "post_processor" of a tokenizer.json: TemplateProcessing, BertProcessing,
// RobertaProcessing, ByteLevel, or a Sequence that holds at most one of the first three. Ids
// for which `is_known` is false are refused. Throws DataError.
SequenceTemplate parse_template(const JsonNode& json,
                                const std::function<bool(int32_t)>& is_known);

}  // namespace tidemark::tokenizers
