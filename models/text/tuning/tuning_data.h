// Examples to fine-tune a language model on: token ids, and which of them count in the loss.
//
//   TuningData data("chats.jsonl", open_tokenizer("model/"), {.longest = 512});
//   const TuningExample example = data.example(0);
//
// The file is one of these, compressed by gzip or not:
//   messages    {"messages": [{"role": "user", "content": "Hi"}, ...]} on each line. The chat
//               template of the tokenizer says what is around them. What the assistant says
//               counts, and so does the token that ends its turn.
//   completion  {"prompt": "...", "completion": "..."} on each line. The completion counts, and
//               so does the token that ends the text.
//   text        {"text": "..."} on each line. All of it counts.
//   plain text  anything else: a text as a whole, cut into windows of `longest` tokens. All of
//               it counts. It is encoded in blocks of lines, of about 4 KiB.
// The first line decides, and all lines must be alike; other members are ignored, and so are
// lines of white space. A name with .txt is plain text, and one with .json or .jsonl is not.
// Special tokens that are written out in the file are ordinary text.
//
// Opening reads the whole file once, and encodes it. Memory does not grow with the file, except
// for an index: 12 bytes an example (of plain text, 16 bytes a block). Compressed files are
// unpacked into memory.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "models/text/tokenizer/model_tokenizer.h"
#include "models/text/tuning/line_file.h"

namespace tidemark {

struct TuningDataOptions {
  int64_t longest = 1024;        // tokens of an example; the rest of a longer one is cut off
  Bytes longest_line{16 << 20};  // longer lines are refused
  Bytes unpack_limit{1 << 30};   // longer compressed files are refused
  // Called while the file is read, with the share of it that is done, from 0 to 1; for a
  // compressed file, of its unpacked text.
  std::function<void(double)> progress{};
};

struct TuningExample {
  std::vector<int32_t> ids;
  std::vector<bool> counts;  // by id: whether predicting it counts in the loss
};

// Examples [begin, end).
struct ExampleRange {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

class TuningData {
 public:
  enum class Form { kMessages, kCompletion, kText, kPlainText };

  // Throws DataError, with the number of the line, for one that is damaged, is not UTF-8, lacks
  // a member, is not of the first line's form, or has a role or an order of roles that the chat
  // template does not have; and if no example remains, or messages come without a template.
  TuningData(const std::string& path, ModelTokenizer model, const TuningDataOptions& options);

  Form form() const { return form_; }
  int64_t longest() const { return options_.longest; }
  const ModelTokenizer& model() const { return model_; }
  const std::string& path() const { return file_.path(); }

  // Examples with at least one token to predict that counts. The others are `skipped`.
  int64_t size() const;
  int64_t skipped() const { return skipped_; }
  int64_t truncated() const { return truncated_; }  // of those that remain; 0 for plain text
  int64_t tokens() const { return tokens_; }        // of all examples
  int64_t counted() const { return counted_; }  // of these, those that are predicted and count

  int64_t length(int64_t example) const;  // in tokens, from 2 to longest()
  // Reads the example from the file and encodes it again. Throws DataError if the file has
  // changed.
  TuningExample example(int64_t index);

  // All examples but the last, and the last `share` of them: at least one if the share is more
  // than 0. Throws UsageError if none is left to train on.
  std::pair<ExampleRange, ExampleRange> split(double share) const;

  // Of the ids of all examples and which count, so of the files of the data and of the
  // tokenizer.
  uint64_t fingerprint() const { return fingerprint_; }
  // An upper bound on host memory, tokenizer excluded, while it is opened and used; the text of
  // the longest line decides.
  Bytes bytes() const;

 private:
  void read_lines();
  void read_plain_text();
  void report() const;
  TuningExample window(int64_t index);
  std::vector<int32_t> encode_block(int64_t start, const std::string& block);

  ModelTokenizer model_;
  TuningDataOptions options_;
  LineFile file_;
  Form form_ = Form::kPlainText;
  std::deque<int64_t> offsets_;     // of each example's line, or of each block of plain text
  std::deque<int32_t> lengths_;     // of each example
  std::deque<int64_t> block_ends_;  // tokens up to the end of each block
  int64_t skipped_ = 0, truncated_ = 0, tokens_ = 0, counted_ = 0;
  size_t longest_part_ = 0;  // bytes of the longest line or block
  uint64_t fingerprint_ = 0;
};

}  // namespace tidemark
