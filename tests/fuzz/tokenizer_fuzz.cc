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
  if (!tidemark::is_utf8(text)) return;
  size_t middle = text.size() / 2;
  while (middle < text.size() && (text[middle] & 0xC0) == 0x80) ++middle;
  const tidemark::tokenizers::TextRange all{0, text.size()}, rest{middle, text.size()};
  const size_t marks[] = {0, middle, text.size()};
  const auto marked = tokenizer.encode_marked(text, {}, marks);
  if (marked.ids != tokenizer.encode(text, {.add_special_tokens = false})) std::abort();
  for (const auto& literal : {all, rest}) {
    const auto some = tokenizer.encode_marked(text, {&literal, 1}, marks);
    if (some.marks.size() != 3 || some.marks[0].before != 0 ||
        some.marks[1].before > some.marks[2].before || some.marks[2].before > some.ids.size()) {
      std::abort();
    }
  }
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
