// Host memory of the data to tune on: what bytes() says is never exceeded, and the file itself
// is never in memory.
#include <gtest/gtest.h>

#include <memory>

#include "models/text/tokenizer/tokenizer_gguf.h"
#include "models/text/tuning/tuning_batches.h"
#include "tests/models/text/tuning/tuning_files.h"
#include "tests/support/counted_heap.h"

namespace tidemark {
namespace {

using namespace tidemark::literals;
using testing::heap_of;

struct Measured {
  Bytes heap, promised, of_data;
  int64_t examples;
};

// Opens a file, and goes through two epochs.
Measured measure(const std::string& path, bool packing,
                 const std::string& tokenizer = "smollm2") {
  ModelTokenizer model = testing::small_model();
  model.tokenizer = testing::golden_tokenizer(tokenizer);
  Measured measured{};
  measured.heap = heap_of([&] {
    TuningData data(path, model, {.longest = 64});
    TuningBatches batches(data, {0, data.size()},
                          {.rows = 4, .length = 64, .packing = packing});
    const int64_t steps = batches.steps_per_epoch();
    for (int64_t i = 0; i < std::min<int64_t>(steps, 50); ++i) (void)batches.at(2 * i);
    (void)batches.filled();
    measured.of_data = data.bytes();
    measured.promised = data.bytes() + batches.bytes();
    measured.examples = data.size();
  });
  return measured;
}

class TuningHeapTest : public ::testing::Test {
 protected:
  void check(const std::string& text, const std::string& what) {
    for (const char* tokenizer : {"smollm2", "llama3", "llama2"}) {
      const Measured measured =
          measure(folder_.write("a.jsonl", testing::bytes_of(text)), true, tokenizer);
      EXPECT_LE(measured.heap, measured.promised) << what << ' ' << tokenizer;
    }
  }
  static std::string line(const std::string& content) {
    return R"({"text": ")" + content + "\"}\n";
  }
  static std::string repeated(const std::string& part, size_t count) {
    std::string all;
    for (size_t i = 0; i < count; ++i) all += part;
    return all;
  }

  testing::TempFolder folder_;
};

TEST_F(TuningHeapTest, ManyLines) {
  const std::string path =
      folder_.write("a.jsonl", testing::bytes_of(repeated(line("abc 123"), 100000)));
  const ModelTokenizer model = testing::small_model();
  Bytes promised;
  const Bytes heap = heap_of([&] { promised = TuningData(path, model, {}).bytes(); });
  EXPECT_LE(heap, promised);
  EXPECT_LT(promised, Bytes(100000 * 16)) << "the index";
  check(repeated(line("abc 123"), 100000), "short lines");
  check(repeated(line("abc"), 3), "three lines");
}

TEST_F(TuningHeapTest, Tokenizers) {
  for (const std::string& name : testing::golden_names()) {
    const std::string json = testing::golden_case(name)["tokenizer"].dump();
    const int64_t before = testing::heap_now;
    const Tokenizer tokenizer = Tokenizer::parse(name, json);
    const Bytes taken{testing::heap_now - before};
    EXPECT_LE(taken, tokenizer.bytes()) << name;
    EXPECT_LE(tokenizer.bytes() - Bytes(1 << 18), taken * 3) << name << ": no loose bound";
  }
}

// As large as those of models: what is constant does not count.
TEST_F(TuningHeapTest, ATokenizerOfManyPieces) {
  GgufVocabulary vocabulary;
  vocabulary.model = "gpt2";
  // Of one width, so that no two pairs make the same piece.
  const auto piece = [](int i) { return "x" + std::to_string(100 + i); };
  for (int i = 0; i < 200; ++i) vocabulary.tokens.push_back(piece(i));
  for (int i = 0; i < 200; ++i) {
    for (int j = 0; j < 200; ++j) {
      vocabulary.merges.push_back(piece(i) + ' ' + piece(j));
      vocabulary.tokens.push_back(piece(i) + piece(j));
    }
  }
  for (size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    vocabulary.token_type.push_back(i % 100 == 0 ? 3 : 1);
  }
  const int64_t before = testing::heap_now;
  const Tokenizer tokenizer = tokenizer_from_gguf("f", vocabulary);
  const Bytes taken{testing::heap_now - before};
  EXPECT_LE(taken, tokenizer.bytes());
  EXPECT_LE(tokenizer.bytes(), taken * 2);
}

TEST_F(TuningHeapTest, TheFileIsNotInMemory) {
  const std::string text = repeated(line("The tide turns. " + std::string(2000, '-')), 3000);
  ASSERT_GT(text.size(), 4u << 20);
  for (const bool packing : {false, true}) {
    const Measured measured =
        measure(folder_.write("a.jsonl", testing::bytes_of(text)), packing);
    EXPECT_LE(measured.heap, measured.promised);
    EXPECT_LT(measured.promised, 2_MiB);
  }
}

TEST_F(TuningHeapTest, LongLines) {
  const size_t large = (1 << 17) + 1;  // just above a capacity of vectors

  check(line(repeated("a ", large)), "words of one letter");
  check(line(repeated("1", large)), "digits");
  check(line(repeated("a", large)), "one word");
  check(line(repeated("?!", large)), "marks");
  check(line(repeated("\u20AC", large)), "euros");
  check(line(repeated("\\n", large)), "line ends");
  check(line(repeated("<|im_end|>", large / 10)), "special tokens");
  check(R"({"text": "abc", "x": [)" + repeated("[],", large) + "[]]}", "lists");
  check(R"({"messages": [)" +
            repeated(R"({"role": "assistant", "content": ""},)", large / 300) +
            R"({"role": "user", "content": ""}]})",
        "messages");
}

TEST_F(TuningHeapTest, PlainTextAndPackedFiles) {
  const std::string text = repeated("The tide turns at 12:45.\n", 100000);
  const std::string plain = folder_.write("a.txt", testing::bytes_of(text));
  const Measured of_plain = measure(plain, true);
  EXPECT_LE(of_plain.heap, of_plain.promised);
  EXPECT_LT(of_plain.of_data, 2_MiB);
  const Measured of_packed =
      measure(folder_.write("a.txt.gz", testing::gzip(testing::bytes_of(text))), true);
  EXPECT_LE(of_packed.heap, of_packed.promised);
  EXPECT_EQ(of_packed.examples, of_plain.examples);
}

}  // namespace
}  // namespace tidemark
