#include "models/text/tokenizer/chat_styles.h"

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <unordered_set>
#include <vector>

#include "models/text/tokenizer/jinja_form.h"
#include "models/text/tokenizer/json_node.h"
#include "models/text/tokenizer/known_templates.h"
#include "models/text/tokenizer/template_pieces.h"
#include "runtime/core/errors.h"

namespace tidemark {
namespace {

using tokenizers::match_piece;

constexpr size_t kMaxTemplate = 1 << 20;  // bytes

bool is_equal(const std::string& known, const std::string& piece) {
  if (known != kDefaultSystemPiece) return known == piece;
  const auto text = match_piece(known, piece);
  return text && !text->empty();
}

// How much of a known template another has.
struct Likeness {
  const KnownTemplate* known = nullptr;
  size_t begin = 0;  // pieces that both begin with
  size_t found = 0;  // expressions, anywhere

  bool operator<(const Likeness& other) const {
    return std::tie(begin, found) < std::tie(other.begin, other.found);
  }
};

bool is_expression(const std::string& piece) { return piece.starts_with("{{"); }

// The known template that begins most like these pieces, with the most expressions that any
// known template shares with them.
Likeness find_nearest(const Pieces& pieces) {
  const std::unordered_set<std::string> all(pieces.begin(), pieces.end());
  Likeness nearest;
  size_t most_found = 0;
  for (const KnownTemplate& known : known_templates()) {
    Likeness likeness{&known};
    for (const std::string& piece : known.pieces) {
      if (is_expression(piece) && all.contains(piece)) ++likeness.found;
    }
    const auto unequal = std::mismatch(known.pieces.begin(), known.pieces.end(), pieces.begin(),
                                       pieces.end(), is_equal);
    likeness.begin = static_cast<size_t>(unequal.second - pieces.begin());
    if (nearest.known == nullptr || nearest < likeness) nearest = likeness;
    most_found = std::max(most_found, likeness.found);
  }
  nearest.found = most_found;
  return nearest;
}

std::string shown(std::string piece) {
  piece = tokenizers::in_quotes(piece);
  for (size_t at = 0; (at = piece.find('\n', at)) != std::string::npos; at += 2) {
    piece.replace(at, 1, "\\n");
  }
  return tokenizers::quote_text(piece);
}

}  // namespace

ChatStyle recognise_style(std::string_view jinja, const std::string& from) {
  if (jinja.size() > kMaxTemplate) {
    throw DataError(from, "the chat template has more than 1 MiB");
  }
  const Pieces pieces = tokenizers::template_pieces(tokenizers::jinja_form(jinja));
  for (const KnownTemplate& known : known_templates()) {
    if (!std::equal(known.pieces.begin(), known.pieces.end(), pieces.begin(), pieces.end(),
                    is_equal)) {
      continue;
    }
    ChatStyle style{.family = known.family, .mistral = known.mistral};
    if (known.family != ChatFamily::kChatMl) return style;
    for (const std::string& piece : pieces) {
      style.begins = style.begins || piece == kBeginPiece;
      if (const auto text = match_piece(kDefaultSystemPiece, piece))
        style.default_system = *text;
    }
    return style;
  }
  const Likeness nearest = find_nearest(pieces);
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
  const std::string fault = "the chat template is not understood: it ";
  if (nearest.begin < pieces.size()) {
    throw DataError(from, fault + "has " + shown(pieces[nearest.begin]));
  }
  const Pieces& wanted = nearest.known->pieces;
  const auto rest = wanted.begin() + static_cast<std::ptrdiff_t>(nearest.begin);
  const auto lacking = std::find_if(rest, wanted.end(), is_expression);
  throw DataError(from, fault + "lacks " + shown(lacking == wanted.end() ? *rest : *lacking));
}

}  // namespace tidemark
