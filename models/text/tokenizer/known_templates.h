// What the published templates for chats consist of, by families.
//
// Immutable; any thread.
#pragma once

#include <string>
#include <vector>

#include "models/text/tokenizer/chat_styles.h"

namespace tidemark {

using Pieces = std::vector<std::string>;  // patterns of template_pieces.h

// A kind of template: it has all of `needed`, and else only `allowed` pieces and
// pieces_of_any(). Their order does not count.
struct KnownTemplate {
  ChatFamily family;
  Pieces needed;
  Pieces allowed = {};
  bool breaks_lines = false;  // a line break as text follows each expression
  const MistralStyle* mistral = nullptr;
};
const std::vector<KnownTemplate>& known_templates();

// Which messages there are, where the prompt goes, and what there is without tools. Which roles
// a template refuses does not matter here.
const Pieces& pieces_of_any();

// Of ChatML: the beginning of a text, and the system message of a chat that has none.
inline const std::string kBeginPiece = "{{bos_token}}";
inline const std::string kDefaultSystemPiece = "{{\x1F<|im_start|>system\n*<|im_end|>\n\x1F}}";

}  // namespace tidemark
