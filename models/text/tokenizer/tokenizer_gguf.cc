#include "models/text/tokenizer/tokenizer_gguf.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "models/text/tokenizer/tokenizer_parts.h"
#include "models/text/unicode.h"
#include "runtime/core/errors.h"

namespace tidemark {
namespace tokenizers {
namespace {

enum TokenType { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kByte = 6 };

// A piece of n bytes is split at n places to find its merges.
constexpr size_t kLongestScored = 1024;

class GgufReader {
 public:
  GgufReader(const std::string& file, const GgufVocabulary& from) : file_(file), from_(from) {}

  std::shared_ptr<const TokenizerParts> run() {
    if (from_.model != "gpt2" && from_.model != "llama") {
      fail("model", "is '" + from_.model + "'; gpt2 and llama are supported");
    }
    add_pieces();
    from_.model == "gpt2" ? make_byte_level() : make_sentence_pieces();
    return std::move(parts_);
  }

 private:
  [[noreturn]] void fail(const std::string& key, const std::string& what) const {
    throw DataError(file_, "tokenizer.ggml." + key + ' ' + what);
  }
  [[noreturn]] void fail(const std::string& key, size_t index, const std::string& what) const {
    fail(key + '[' + std::to_string(index) + ']', what);
  }

  int32_t type(size_t index) const {
    return from_.token_type.empty() ? int32_t{kNormal} : from_.token_type[index];
  }

  void add_pieces() {
    const size_t count = from_.tokens.size();
    if (count == 0) fail("tokens", "is empty");
    if (count > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
      fail("tokens", "has more than 2^31 pieces");
    }
    if (!from_.token_type.empty() && from_.token_type.size() != count) {
      fail("token_type", "has " + std::to_string(from_.token_type.size()) + " values for " +
                             std::to_string(count) + " tokens");
    }
    for (size_t i = 0; i < count; ++i) {
      const std::string& text = from_.tokens[i];
      const auto id = static_cast<int32_t>(i);
      if (type(i) < kNormal || type(i) > kByte) {
        fail("token_type", i, "is " + std::to_string(type(i)) + ", not from 1 to 6");
      }
      if (!parts_->model_pieces.add(text, id)) {
        fail("tokens", i,
             "is " + quote_text(text) + ", like token " +
                 std::to_string(*parts_->model_pieces.find(text)));
      }
      const bool is_special = type(i) == kControl || type(i) == kUnknown;
      if (!text.empty() && (is_special || type(i) == kUserDefined)) {
        AddedToken token;
        token.id = id;
        token.text = text;
        token.special = is_special;
        parts_->in_text.add(std::move(token));
      }
    }
  }

  std::optional<int32_t> checked(const std::string& key, std::optional<int32_t> id) const {
    if (id && (*id < 0 || static_cast<size_t>(*id) >= from_.tokens.size())) {
      fail(key, "is " + std::to_string(*id) + ", which is no token");
    }
    return id;
  }

  void make_template() {
    const auto begin = checked("bos_token_id", from_.bos_token_id);
    const auto end = checked("eos_token_id", from_.eos_token_id);
    if (from_.add_bos_token.value_or(false) && !begin) fail("bos_token_id", "is missing");
    if (from_.ends() && !end) fail("eos_token_id", "is missing");
    parts_->sequence = SequenceTemplate::around(from_.begins() ? begin : std::nullopt,
                                                from_.ends() ? end : std::nullopt);
  }

  void make_byte_level() {
    const bool is_llama3 = from_.pre == "llama-bpe";
    if (is_llama3) {
      parts_->pre_tokenizer = byte_level_words_of(kLlama3Words);
    } else if (from_.pre == "qwen2") {
      parts_->pre_tokenizer = byte_level_words_of(kQwen2Words);
      parts_->normalizer = compose();
    } else if (from_.pre == "smollm") {
      parts_->pre_tokenizer = in_sequence({split_digits(), byte_level_words(false, true)});
    } else if (from_.pre.empty() || from_.pre == "default" || from_.pre == "gpt-2") {
      parts_->pre_tokenizer = byte_level_words(false, true);
    } else {
      fail("pre", "is " + quote_text(from_.pre) +
                      "; default, gpt-2, llama-bpe, qwen2 and smollm are supported");
    }
    PairMerges::Options options;
    options.ignore_merges = is_llama3;
    auto model = std::make_unique<PairMerges>(parts_->model_pieces, std::move(options));
    for (size_t i = 0; i < from_.merges.size(); ++i) {
      const std::string& merge = from_.merges[i];
      const size_t space = merge.find(' ');
      if (space == std::string::npos || merge.find(' ', space + 1) != std::string::npos) {
        fail("merges", i,
             "is " + quote_text(merge) + ", not two pieces with a space between them");
      }
      const auto known = [&](const std::string& piece) {
        const auto id = parts_->model_pieces.find(piece);
        if (!id) fail("merges", i, "needs " + quote_text(piece) + ", which is no token");
        return *id;
      };
      const std::string left = merge.substr(0, space);
      const std::string right = merge.substr(space + 1);
      const int32_t left_id = known(left);
      const int32_t right_id = known(right);
      model->add_merge(left_id, right_id, static_cast<int64_t>(i), known(left + right));
    }
    parts_->model = std::move(model);
    parts_->decoder = byte_level_decoder();
    make_template();
  }

  // SentencePiece joins the neighbours that form the piece with the highest score.
  void make_sentence_pieces() {
    const size_t count = from_.tokens.size();
    if (from_.scores.size() != count) {
      fail("scores", "has " + std::to_string(from_.scores.size()) + " values for " +
                         std::to_string(count) + " tokens");
    }
    std::vector<float> ranks;  // the scores, the highest first
    for (size_t i = 0; i < count; ++i) {
      if (std::isnan(from_.scores[i])) fail("scores", i, "is not a number");
      ranks.push_back(from_.scores[i]);
    }
    std::sort(ranks.begin(), ranks.end(), std::greater<>());

    PairMerges::Options options;
    options.unknown = checked("unknown_token_id", from_.unknown_token_id);
    options.fuse_unknown = true;
    options.byte_fallback = true;
    auto model = std::make_unique<PairMerges>(parts_->model_pieces, std::move(options));
    for (size_t i = 0; i < count; ++i) {
      if (type(i) != kNormal) continue;
      const std::string& piece = from_.tokens[i];
      if (piece.size() > kLongestScored) fail("tokens", i, "has more than 1024 bytes");
      const auto rank =
          std::lower_bound(ranks.begin(), ranks.end(), from_.scores[i], std::greater<>()) -
          ranks.begin();
      for (size_t at = 0; at < piece.size();) {
        next_code_point(piece, at);
        const auto left = parts_->model_pieces.find(std::string_view(piece).substr(0, at));
        const auto right = parts_->model_pieces.find(std::string_view(piece).substr(at));
        if (at < piece.size() && left && right) {
          model->add_merge(*left, *right, rank, static_cast<int32_t>(i));
        }
      }
    }
    parts_->model = std::move(model);
    const bool prefix = from_.has_space_prefix();
    parts_->normalizer = mark_spaces(prefix);
    parts_->decoder = sentence_piece_decoder(prefix);
    make_template();
  }

  const std::string& file_;
  const GgufVocabulary& from_;
  std::shared_ptr<TokenizerParts> parts_ = std::make_shared<TokenizerParts>();
};

}  // namespace
}  // namespace tokenizers

Tokenizer tokenizer_from_gguf(const std::string& file, const GgufVocabulary& vocabulary) {
  return Tokenizer(tokenizers::GgufReader(file, vocabulary).run());
}

}  // namespace tidemark
