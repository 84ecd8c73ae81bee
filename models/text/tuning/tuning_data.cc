#include "models/text/tuning/tuning_data.h"

#include <algorithm>
#include <cmath>

#include "models/text/tuning/tuning_line.h"
#include "models/text/unicode.h"
#include "runtime/core/errors.h"
#include "runtime/core/hash.h"

namespace tidemark {
namespace {

constexpr size_t kBlockBytes = 1 << 12;
constexpr std::string_view kWhiteSpace = " \t\r\n\v\f";

bool is_blank(std::string_view line) {
  return line.find_first_not_of(kWhiteSpace) == std::string_view::npos;
}

bool is_json(std::string path, std::string_view first_line) {
  if (path.ends_with(".gz")) path.resize(path.size() - 3);
  if (path.ends_with(".txt")) return false;
  return path.ends_with(".json") || path.ends_with(".jsonl") ||
         first_line[first_line.find_first_not_of(kWhiteSpace)] == '{';
}

// Tokens to predict that count: the first of an example is not predicted.
int64_t predicted(const TuningExample& example) {
  return example.counts.empty()
             ? 0
             : std::count(example.counts.begin() + 1, example.counts.end(), true);
}

}  // namespace

TuningData::TuningData(const std::string& path, ModelTokenizer model,
                       const TuningDataOptions& options)
    : model_(std::move(model)),
      options_(options),
      file_(path, options.longest_line, options.unpack_limit) {
  if (options.longest < 2) {
    throw UsageError("[tuning data] an example needs at least 2 tokens, not " +
                     std::to_string(options.longest));
  }
  std::string line;
  while (file_.next(line) && is_blank(line)) {
  }
  if (is_blank(line)) throw DataError(path, "is empty");
  const bool has_lines = is_json(path, line);
  file_.seek(0);
  has_lines ? read_lines() : read_plain_text();
  options_.progress = nullptr;
  if (size() == 0) {
    throw DataError(path, "has no example with a token to learn among its first " +
                              std::to_string(options.longest) + " tokens");
  }
}

void TuningData::report() const {
  if (!options_.progress || file_.size() == 0) return;
  options_.progress(static_cast<double>(file_.position()) / static_cast<double>(file_.size()));
}

void TuningData::read_lines() {
  WordHash hash;
  std::string line;
  for (int64_t start = 0; start = file_.position(), file_.next(line);) {
    report();
    if (is_blank(line)) continue;
    const LineFault fail = [&](const std::string& what, size_t within) {
      file_.fail(start, what, within);
    };
    if (form_ == Form::kPlainText) form_ = form_of_line(line, fail);
    longest_part_ = std::max(longest_part_, line.size());
    TuningExample example = example_of_line(line, form_, model_, fail);
    const bool is_long = std::cmp_greater(example.ids.size(), options_.longest);
    if (is_long) {
      example.ids.resize(static_cast<size_t>(options_.longest));
      example.counts.resize(example.ids.size());
    }
    const int64_t counted = predicted(example);
    if (counted == 0) {
      ++skipped_;
      continue;
    }
    truncated_ += is_long;
    counted_ += counted;
    tokens_ += static_cast<int64_t>(example.ids.size());
    offsets_.push_back(start);
    lengths_.push_back(static_cast<int32_t>(example.ids.size()));
    hash.add(example.ids.size());
    for (size_t i = 0; i < example.ids.size(); ++i) {
      hash.add(uint64_t{example.counts[i]} << 32 | static_cast<uint32_t>(example.ids[i]));
    }
  }
  fingerprint_ = hash.value();
}

std::vector<int32_t> TuningData::encode_block(int64_t start, const std::string& block) {
  for (size_t at = 0; at < block.size();) {
    const size_t from = at;
    if (next_code_point(block, at) == kReplacement && at - from == 1) {
      file_.fail(start, "is not UTF-8", from);
    }
  }
  return model_.tokenizer.encode(block,
                                 {.add_special_tokens = false, .find_special_tokens = false});
}

void TuningData::read_plain_text() {
  WordHash hash;
  hash.add(static_cast<uint64_t>(options_.longest));
  std::string block;
  for (int64_t start = 0; start = file_.position(), file_.next_block(block, kBlockBytes);) {
    report();
    longest_part_ = std::max(longest_part_, block.size());
    const std::vector<int32_t> ids = encode_block(start, block);
    for (const int32_t id : ids) hash.add(static_cast<uint64_t>(id));
    tokens_ += static_cast<int64_t>(ids.size());
    offsets_.push_back(start);
    block_ends_.push_back(tokens_);
  }
  if (tokens_ % options_.longest == 1) --tokens_;  // a window of one token predicts nothing
  counted_ = tokens_ - size();
  fingerprint_ = hash.value();
}

int64_t TuningData::size() const {
  return form_ == Form::kPlainText ? (tokens_ + options_.longest - 1) / options_.longest
                                   : static_cast<int64_t>(offsets_.size());
}

int64_t TuningData::length(int64_t example) const {
  return form_ == Form::kPlainText
             ? std::min(options_.longest, tokens_ - example * options_.longest)
             : lengths_[static_cast<size_t>(example)];
}

TuningExample TuningData::window(int64_t index) {
  const int64_t begin = index * options_.longest, end = begin + length(index);
  TuningExample example;
  auto block = static_cast<size_t>(
      std::upper_bound(block_ends_.begin(), block_ends_.end(), begin) - block_ends_.begin());
  std::string text;
  for (int64_t at = begin; at < end; ++block) {
    file_.seek(offsets_[block]);
    file_.next_block(text, kBlockBytes);
    const std::vector<int32_t> ids = encode_block(offsets_[block], text);
    const int64_t first = block == 0 ? 0 : block_ends_[block - 1];
    if (first + static_cast<int64_t>(ids.size()) != block_ends_[block]) {
      throw DataError(path(), offsets_[block], "has changed since it was opened");
    }
    const int64_t until = std::min(end, block_ends_[block]);
    example.ids.insert(example.ids.end(), ids.begin() + (at - first),
                       ids.begin() + (until - first));
    at = until;
  }
  example.counts.assign(example.ids.size(), true);
  return example;
}

TuningExample TuningData::example(int64_t index) {
  if (index < 0 || index >= size()) {
    throw UsageError("[tuning data] there is no example " + std::to_string(index) + " of " +
                     std::to_string(size()));
  }
  if (form_ == Form::kPlainText) return window(index);
  const int64_t start = offsets_[static_cast<size_t>(index)];
  const LineFault fail = [&](const std::string& what, size_t within) {
    file_.fail(start, what, within);
  };
  std::string line;
  file_.seek(start);
  file_.next(line);
  TuningExample example = example_of_line(line, form_, model_, fail);
  const auto most = static_cast<size_t>(options_.longest);
  if (example.ids.size() > most) {
    example.ids.resize(most);
    example.counts.resize(most);
  }
  if (std::cmp_not_equal(example.ids.size(), length(index))) {
    fail("has changed since the file was opened", 0);
  }
  return example;
}

std::pair<ExampleRange, ExampleRange> TuningData::split(double share) const {
  if (!(share >= 0 && share < 1)) {
    throw UsageError("[tuning data] a share must be at least 0 and less than 1, not " +
                     std::to_string(share));
  }
  const auto part = static_cast<int64_t>(std::floor(share * static_cast<double>(size())));
  const int64_t held_out = share > 0 ? std::max<int64_t>(1, part) : 0;
  if (held_out == size()) {
    throw UsageError("[tuning data] with " + std::to_string(held_out) +
                     " examples held out, none is left to train on");
  }
  return {{0, size() - held_out}, {size() - held_out, size()}};
}

Bytes TuningData::bytes() const {
  // Bytes of a line turn into JSON, words and pieces: up to 125 bytes each, as measured with
  // words of one letter.
  constexpr int64_t kPerByteOfLine = 192, kAlways = 1 << 16;
  const auto part = static_cast<int64_t>(longest_part_);
  const auto count = static_cast<int64_t>(offsets_.size());
  const int64_t entry = form_ == Form::kPlainText ? 16 : 12;
  return file_.bytes() + Bytes(kAlways + part * kPerByteOfLine + count * entry * 9 / 8);
}

}  // namespace tidemark
