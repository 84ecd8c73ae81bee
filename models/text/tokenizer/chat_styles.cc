#include "models/text/tokenizer/chat_styles.h"

#include <algorithm>
#include <vector>

#include "models/text/tokenizer/jinja_form.h"
#include "models/text/tokenizer/json_node.h"
#include "models/text/tokenizer/known_templates.h"
#include "models/text/tokenizer/template_pieces.h"
#include "runtime/core/errors.h"

namespace tidemark {
namespace {

using tokenizers::match_piece;

bool is_among(const Pieces& patterns, const std::string& piece) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& each) { return match_piece(each, piece); });
}

// The pieces that keep a template from being of a kind.
struct Difference {
  Pieces unknown, missing;
  size_t found = 0;
};
Difference compare(const Pieces& pieces, const KnownTemplate& known) {
  Difference difference;
  for (const std::string& needed : known.needed) {
    const bool has = std::find(pieces.begin(), pieces.end(), needed) != pieces.end();
    has ? void(++difference.found) : difference.missing.push_back(needed);
  }
  for (size_t i = 0; i < pieces.size(); ++i) {
    const bool is_expression = !pieces[i].starts_with("{%");
    const bool is_break = known.breaks_lines && pieces[i] == "\n" && i > 0;
    const bool needs_break = known.breaks_lines && is_expression && pieces[i] != "\n";
    const bool is_known = is_break || is_among(known.needed, pieces[i]) ||
                          is_among(known.allowed, pieces[i]) ||
                          is_among(pieces_of_any(), pieces[i]);
    // A beginning behind other things is written somewhere else.
    const bool is_late =
        known.family == ChatFamily::kChatMl && pieces[i] == kBeginPiece && i > 0;
    const bool lacks_break = needs_break && (i + 1 == pieces.size() || pieces[i + 1] != "\n");
    if (!is_known || is_late || lacks_break) difference.unknown.push_back(pieces[i]);
  }
  return difference;
}

std::string shown(std::string piece) {
  if (piece.starts_with(tokenizers::kPromptMark)) {
    piece = piece.substr(tokenizers::kPromptMark.size());
  }
  piece = tokenizers::in_quotes(piece);
  for (size_t at = 0; (at = piece.find('\n', at)) != std::string::npos; at += 2) {
    piece.replace(at, 1, "\\n");
  }
  return tokenizers::quote_text(piece);
}

}  // namespace

ChatStyle recognise_style(std::string_view jinja, const std::string& from) {
  const Pieces pieces = tokenizers::template_pieces(tokenizers::jinja_form(jinja));
  Difference nearest;
  for (const KnownTemplate& known : known_templates()) {
    Difference difference = compare(pieces, known);
    if (difference.missing.empty() && difference.unknown.empty()) {
      ChatStyle style{.family = known.family, .mistral = known.mistral};
      style.begins = style.family == ChatFamily::kChatMl && pieces.front() == kBeginPiece;
      for (const std::string& piece : pieces) {
        if (style.family != ChatFamily::kChatMl) break;
        if (const auto text = match_piece(kDefaultSystemPiece, piece))
          style.default_system = *text;
      }
      return style;
    }
    const size_t count = difference.unknown.size() + difference.missing.size();
    const size_t nearest_count = nearest.unknown.size() + nearest.missing.size();
    if (difference.found > nearest.found ||
        (difference.found == nearest.found && count < nearest_count)) {
      nearest = std::move(difference);
    }
  }
  if (nearest.found == 0) {
    const auto written =
        std::find_if(pieces.begin(), pieces.end(), [](const std::string& piece) {
          return !piece.starts_with("{%") && piece.find("content") != std::string::npos;
        });
    throw DataError(from,
                    "the chat template is not of a known family (ChatML, Llama 2, Llama 3, "
                    "Mistral, Zephyr): it writes " +
                        (written == pieces.end() ? "no messages" : shown(*written)));
  }
  throw DataError(
      from,
      nearest.unknown.empty()
          ? "the chat template is not understood: it lacks " + shown(nearest.missing.front())
          : "the chat template is not understood: it has " + shown(nearest.unknown.front()));
}

}  // namespace tidemark
