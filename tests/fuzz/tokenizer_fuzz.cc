// Any bytes up to the first 0 as a tokenizer.json, those behind it as a text: encoded, streamed
// and decoded. The whole is also a chat template, and a GGUF file's pieces and merges, a line
// each. A DataError is fine.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/tokenizer/chat_template.h"
#include "models/text/tokenizer/tokenizer_gguf.h"
#include "models/text/unicode.h"
#include "runtime/core/errors.h"
#include "tests/fuzz/within_input.h"

namespace {

void encode(const tidemark::Tokenizer& tokenizer, std::string_view text) {
  const std::vector<int32_t> ids = tokenizer.encode(text);
  tidemark::TokenStream stream(tokenizer);
  std::string streamed;
  for (const int32_t id : ids) {
    if (id < 0 || id >= tokenizer.vocabulary_size() || !tokenizer.piece(id)) std::abort();
    streamed += stream.add(id);
  }
  streamed += stream.end();
  if (streamed != tokenizer.decode(ids) || !tidemark::is_utf8(streamed)) std::abort();
  (void)tokenizer.encode_pair(text, text, {.find_special_tokens = false});
}

// Lines with a space are merges, the others pieces.
tidemark::GgufVocabulary vocabulary_of(std::string_view text) {
  tidemark::GgufVocabulary vocabulary;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const bool is_merge = line.find(' ') != std::string_view::npos;
    (is_merge ? vocabulary.merges : vocabulary.tokens).emplace_back(line);
    if (is_merge) continue;
    vocabulary.scores.push_back(-static_cast<float>(line.size()));
    vocabulary.token_type.push_back(line.starts_with('<') ? 3 : 1);
  }
  return vocabulary;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const size_t cut = std::min(all.find('\0'), all.size());
  const std::string_view text = all.substr(std::min(cut + 1, all.size()));
  allow_errors_within(cut, [&] {
    encode(tidemark::Tokenizer::parse("tokenizer.json", all.substr(0, cut)), text);
  });
  allow_errors_within(size, [&] { (void)tidemark::ChatTemplate::recognise(all, "jinja"); });
  tidemark::GgufVocabulary vocabulary = vocabulary_of(text);
  for (const char* model : {"gpt2", "llama"}) {
    vocabulary.model = model;
    allow_errors_within(
        size, [&] { encode(tidemark::tokenizer_from_gguf("gguf", vocabulary), text); });
  }
  return 0;
}
