// Any bytes up to the first 0 as a vocab.txt, those behind it as a text: tokenized with that
// vocabulary, with one learnt from it, and decoded again. A DataError is fine.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/word_piece.h"
#include "runtime/core/errors.h"

namespace {

void tokenize(const tidemark::WordPiece& pieces, std::string_view text) {
  std::vector<int32_t> ids;
  size_t reached = 0;
  for (const tidemark::Token& token : pieces.tokenize(text)) {
    // In order, within the text; several may come from one character.
    if (token.begin >= token.end || token.end > text.size() || token.begin < reached) {
      std::abort();
    }
    reached = token.begin;
    ids.push_back(token.id);
  }
  (void)pieces.decode(ids);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const size_t cut = std::min(all.find('\0'), all.size());
  const std::string_view text = all.substr(std::min(cut + 1, all.size()));
  for (const bool uncased : {false, true}) {
    tokenize(
        tidemark::WordPiece(tidemark::build_vocabulary(text, {.size = 64, .uncased = uncased}),
                            {.uncased = uncased}),
        text);
    try {
      tokenize(tidemark::WordPiece(tidemark::Vocabulary::parse("vocab.txt", all.substr(0, cut)),
                                   {.uncased = uncased}),
               text);
    } catch (const tidemark::DataError& error) {
      if (error.offset() < -1 || error.offset() > static_cast<int64_t>(cut)) std::abort();
    }
  }
  return 0;
}
