// Any bytes as a file to fine-tune on: JSONL of every form, plain text, or either packed by
// gzip. What is read goes through batches. A DataError is fine.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "models/text/tuning/tuning_batches.h"
#include "tests/fuzz/within_input.h"

namespace {

const tidemark::ModelTokenizer& model() {
  static const tidemark::ModelTokenizer made{tidemark::Tokenizer::parse("fuzz", R"({
        "added_tokens": [
          {"id": 0, "content": "<end>", "special": true},
          {"id": 1, "content": "<|im_start|>", "special": true},
          {"id": 2, "content": "<|im_end|>", "special": true}],
        "model": {"type": "BPE", "unk_token": "?", "merges": ["a b", "s e"],
          "vocab": {"<end>": 0, "<|im_start|>": 1, "<|im_end|>": 2, "?": 3, "a": 4, "b": 5,
                    "ab": 6, "s": 7, "e": 8, "se": 9, "\n": 10}}})"),
                                             tidemark::ChatTemplate::named("chatml"),
                                             {},
                                             {},
                                             0,
                                             {0, 2},
                                             0};
  return made;
}

void use(tidemark::TuningData& data) {
  for (const bool packing : {false, true}) {
    tidemark::TuningBatches batches(
        data, {0, data.size()}, {.rows = 2, .length = 20, .packing = packing, .multiple = 8});
    int64_t counted = 0;
    for (int64_t i = 0; i < batches.steps_per_epoch(); ++i) {
      const tidemark::TuningBatch batch = batches.at(i);
      counted += batch.counted;
      for (size_t at = 0; at < batch.tokens.size(); ++at) {
        const int64_t column = static_cast<int64_t>(at) % batch.length;
        if (batch.starts[at] < 0 || batch.starts[at] > column ||
            (column == 0 && batch.starts[at] != 0)) {
          std::abort();
        }
      }
    }
    if (counted != data.counted()) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static const int memory = memfd_create("tuning", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(memory);
  if (memory < 0 || ftruncate(memory, 0) != 0 ||
      pwrite(memory, bytes, size, 0) != static_cast<ssize_t>(size)) {
    std::abort();
  }
  allow_errors_within(size, [&] {
    tidemark::TuningData data(path, model(),
                              {.longest = 16,
                               .longest_line = tidemark::Bytes(1024),
                               .unpack_limit = tidemark::Bytes(65536)});
    use(data);
  });
  return 0;
}
