#include "models/text/tokenizer/tokenizer.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "models/text/tokenizer/tokenizer_parts.h"
#include "models/text/unicode.h"

namespace tidemark {
namespace {

using tokenizers::AddedTokens;
using tokenizers::PreToken;
using tokenizers::TokenizerParts;

// Words repeat, so their pieces are kept while a text is encoded.
class WordCache {
 public:
  explicit WordCache(const tokenizers::SubwordModel& model) : model_(model) {}

  void split(const std::string& word, std::vector<int32_t>& ids) {
    if (word.size() > kLongest) return model_.split(word, ids);
    const auto found = pieces_.find(word);
    if (found != pieces_.end()) {
      ids.insert(ids.end(), found->second.begin(), found->second.end());
      return;
    }
    const size_t already = ids.size();
    model_.split(word, ids);
    if (pieces_.size() == kMost) return;
    pieces_.emplace(
        word, std::vector<int32_t>(ids.begin() + static_cast<ptrdiff_t>(already), ids.end()));
  }

 private:
  // Together some megabytes at most.
  static constexpr size_t kLongest = 64, kMost = 16384;

  const tokenizers::SubwordModel& model_;
  std::unordered_map<std::string, std::vector<int32_t>> pieces_;
};

// One text being encoded, without the template.
class Encoding {
 public:
  Encoding(const TokenizerParts& parts, bool find_special)
      : parts_(parts), find_special_(find_special), words_(*parts.model) {}

  std::vector<int32_t> run(std::string_view text) {
    for (const AddedTokens::Part& part : parts_.in_text.split(text, find_special_)) {
      if (part.id >= 0) {
        ids_.push_back(part.id);
      } else {
        normalize(std::string(part.range.of(text)), part.range.begin == 0);
      }
    }
    return std::move(ids_);
  }

 private:
  void normalize(std::string text, bool is_first) {
    if (parts_.normalizer) text = parts_.normalizer(std::move(text));
    for (const AddedTokens::Part& part : parts_.in_normalized.split(text, find_special_)) {
      if (part.id >= 0) {
        ids_.push_back(part.id);
      } else {
        split({std::string(part.range.of(text)), is_first && part.range.begin == 0});
      }
    }
  }

  void split(PreToken text) {
    std::vector<PreToken> tokens{std::move(text)};
    if (parts_.pre_tokenizer) parts_.pre_tokenizer(tokens);
    for (const PreToken& token : tokens) words_.split(token.text, ids_);
  }

  const TokenizerParts& parts_;
  bool find_special_;
  WordCache words_;
  std::vector<int32_t> ids_;
};

std::vector<int32_t> encode_alone(const TokenizerParts& parts, std::string_view text,
                                  const EncodeOptions& options) {
  Encoding encoding(parts, options.find_special_tokens);
  return is_utf8(text) ? encoding.run(text) : encoding.run(replace_invalid_utf8(text));
}

}  // namespace

std::vector<int32_t> Tokenizer::encode(std::string_view text,
                                       const EncodeOptions& options) const {
  return tokenizers::fill(parts_->sequence.single, options.add_special_tokens,
                          encode_alone(*parts_, text, options), {});
}

std::vector<int32_t> Tokenizer::encode_pair(std::string_view first, std::string_view second,
                                            const EncodeOptions& options) const {
  return tokenizers::fill(parts_->sequence.pair, options.add_special_tokens,
                          encode_alone(*parts_, first, options),
                          encode_alone(*parts_, second, options));
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special_tokens) const {
  TokenStream stream(*this, skip_special_tokens);
  std::string text;
  for (const int32_t id : ids) text += stream.add(id);
  return text + stream.end();
}

int64_t Tokenizer::vocabulary_size() const {
  return std::max(parts_->model_pieces.size(), parts_->added_pieces.size());
}

std::optional<int32_t> Tokenizer::find(std::string_view piece) const {
  const auto added = parts_->added_pieces.find(piece);
  return added ? added : parts_->model_pieces.find(piece);
}

std::optional<std::string> Tokenizer::piece(int32_t id) const {
  const std::string* const found = parts_->piece(id);
  if (found == nullptr) return std::nullopt;
  return *found;
}

bool Tokenizer::is_special(int32_t id) const { return parts_->is_special(id); }

struct TokenStream::State {
  std::shared_ptr<const TokenizerParts> parts;
  bool skip_special;
  tokenizers::Decoding decoding;
};

TokenStream::TokenStream(const Tokenizer& tokenizer, bool skip_special_tokens)
    : state_(std::make_unique<State>(State{tokenizer.parts_, skip_special_tokens,
                                           tokenizers::Decoding(tokenizer.parts_->decoder)})) {}
TokenStream::TokenStream(TokenStream&&) noexcept = default;
TokenStream& TokenStream::operator=(TokenStream&&) noexcept = default;
TokenStream::~TokenStream() = default;

std::string TokenStream::add(int32_t id) {
  const std::string* const piece = state_->parts->piece(id);
  if (piece == nullptr) return {};
  if (state_->skip_special && state_->parts->is_special(id)) return {};
  return state_->decoding.add(*piece);
}

std::string TokenStream::end() { return state_->decoding.end(); }

}  // namespace tidemark
