// What the published templates for chats consist of, by families.
//
// Immutable; any thread.
#pragma once

#include <string>
#include <vector>

#include "models/text/tokenizer/chat_styles.h"

namespace tidemark {

using Pieces = std::vector<std::string>;  // of template_pieces.h

// One way in which a family's templates are written: all pieces, in order. Of published
// templates that differ in small things, every combination is here.
struct KnownTemplate {
  ChatFamily family;
  Pieces pieces;
  const MistralStyle* mistral = nullptr;
};
const std::vector<KnownTemplate>& known_templates();

// Of ChatML: the beginning of a text, and the system message of a chat that has none. The
// latter is a pattern (match_piece).
inline const std::string kBeginPiece = "{{bos_token}}";
inline const std::string kDefaultSystemPiece = "{{\x1F<|im_start|>system\n*<|im_end|>\n\x1F}}";

}  // namespace tidemark
