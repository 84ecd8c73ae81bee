// Any bytes as SQuAD's JSON; what is read goes through features, batches and scores. A
// DataError is fine.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/squad.h"
#include "tests/fuzz/within_input.h"

namespace {

const tidemark::WordPiece& pieces() {
  static const tidemark::WordPiece made(tidemark::Vocabulary(
      {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "##a", "b", "##b", "the", "moon", "tide"}));
  return made;
}

void use(const std::vector<tidemark::SquadExample>& examples) {
  const auto features = tidemark::squad_features(
      examples, pieces(), {.max_length = 16, .stride = 3, .max_question = 5});
  if (features.size() < examples.size()) std::abort();
  tidemark::SquadAnswers answers(examples);
  for (const tidemark::SquadFeature& feature : features) {
    const std::vector<float> logits(feature.tokens.size(), 0);
    answers.add(feature, logits, logits);
  }
  const tidemark::SquadScore score = tidemark::squad_score(examples, answers.texts());
  if (!(score.f1 >= 0 && score.f1 <= 100.001)) std::abort();
  if (features.empty()) return;
  tidemark::SquadBatches batches(features, 0, {.batch = 3, .bucket = 2});
  for (int64_t i = 0; i < batches.batches_per_epoch(); ++i) (void)batches.at({0, i});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  allow_errors_within(size, [&] {
    use(tidemark::parse_squad("input", {reinterpret_cast<const char*>(data), size}));
  });
  return 0;
}
