// Small files to tune on, and a small tokenizer for them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "models/text/tuning/tuning_data.h"
#include "tests/models/data/files.h"
#include "tests/models/text/tokenizer/golden_tokenizers.h"

namespace tidemark::testing {

inline ByteVector bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

// Byte-level; 0 ends a text, 2 a turn of the chat.
inline ModelTokenizer small_model() {
  static const Tokenizer tokenizer = golden_tokenizer("smollm2");
  return {tokenizer, ChatTemplate::named("chatml"), {}, {}, 0, {0, 2}, 1};
}

// The ids that count, as text; "|" stands for each stretch of others.
inline std::string said(const ModelTokenizer& model, const TuningExample& example) {
  std::string all;
  for (size_t i = 0; i < example.ids.size(); ++i) {
    if (example.counts[i]) {
      all += model.tokenizer.decode(std::vector{example.ids[i]}, false);
    } else if (i == 0 || example.counts[i - 1]) {
      all += '|';
    }
  }
  return all;
}

}  // namespace tidemark::testing
