#include "models/text/tokenizer/tokenizer.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "models/text/tokenizer/tokenizer_parts.h"
#include "models/text/unicode.h"
#include "runtime/core/errors.h"

namespace tidemark {
namespace {

using tokenizers::AddedTokens;
using tokenizers::PreToken;
using tokenizers::TextRange;
using tokenizers::TextRanges;
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

// What of `ranges` lies in `window`, counted from its beginning.
TextRanges clipped(std::span<const TextRange> ranges, const TextRange& window) {
  TextRanges inside;
  auto range = std::partition_point(ranges.begin(), ranges.end(), [&](const TextRange& each) {
    return each.end <= window.begin;
  });
  for (; range != ranges.end() && range->begin < window.end; ++range) {
    inside.push_back({std::max(range->begin, window.begin) - window.begin,
                      std::min(range->end, window.end) - window.begin});
  }
  return inside;
}

// Where `ranges` of `text` are once it is normalized. They may grow, if what surrounds them is
// normalized differently without them.
TextRanges normalized_ranges(const tokenizers::Normalizer& normalizer, const std::string& text,
                             const std::string& normalized, const TextRanges& ranges) {
  TextRanges moved;
  size_t reached = 0;
  for (const TextRange& range : ranges) {
    const std::string before = normalizer(text.substr(0, range.begin));
    const std::string after = normalizer(text.substr(range.end));
    const auto same_before = static_cast<size_t>(
        std::mismatch(before.begin(), before.end(), normalized.begin(), normalized.end())
            .first -
        before.begin());
    const auto same_after = static_cast<size_t>(
        std::mismatch(after.rbegin(), after.rend(), normalized.rbegin(), normalized.rend())
            .first -
        after.rbegin());
    const size_t begin = std::max(reached, same_before);
    reached = std::max(begin, normalized.size() - same_after);
    if (begin < reached) moved.push_back({begin, reached});
  }
  return moved;
}

// One text being encoded, without the template.
class Encoding {
 public:
  Encoding(const TokenizerParts& parts, bool find_special)
      : parts_(parts), find_special_(find_special), words_(*parts.model) {}

  std::vector<int32_t> run(std::string_view text) {
    add(text, 0, {});
    return std::move(ids_);
  }

  MarkedIds run(std::string_view text, std::span<const TextRange> literal,
                std::span<const size_t> marks) {
    MarkedIds marked;
    for (const AddedTokens::Part& part : parts_.in_text.split(text, find_special_, literal)) {
      const size_t before = ids_.size();
      add(part, text, literal);
      const std::span<const int32_t> made = std::span(ids_).subspan(before);
      for (; !marks.empty() && marks.front() < part.range.end; marks = marks.subspan(1)) {
        // What is before a mark depends on the bytes before it in this part alone.
        const TextRange cut{part.range.begin, marks.front()};
        Encoding prefix(parts_, find_special_);
        prefix.add(cut.of(text), cut.begin, clipped(literal, cut));
        const auto same = static_cast<size_t>(
            std::mismatch(prefix.ids_.begin(), prefix.ids_.end(), made.begin(), made.end())
                .first -
            prefix.ids_.begin());
        marked.marks.push_back({before + same, same == prefix.ids_.size()});
      }
    }
    marked.ids = std::move(ids_);
    marked.marks.resize(marked.marks.size() + marks.size(), {marked.ids.size(), true});
    return marked;
  }

 private:
  // `text` begins at byte `at` of the whole.
  void add(std::string_view text, size_t at, std::span<const TextRange> literal) {
    for (const AddedTokens::Part& part : parts_.in_text.split(text, find_special_, literal)) {
      add(part, text, literal, at);
    }
  }

  void add(const AddedTokens::Part& part, std::string_view text,
           std::span<const TextRange> literal, size_t at = 0) {
    if (part.id >= 0) {
      ids_.push_back(part.id);
    } else {
      normalize(std::string(part.range.of(text)), at + part.range.begin == 0,
                literal.empty() ? TextRanges() : clipped(literal, part.range));
    }
  }

  void normalize(std::string text, bool is_first, TextRanges literal) {
    if (parts_.normalizer) {
      std::string normalized = parts_.normalizer(text);
      if (!literal.empty() && parts_.in_normalized.has_special()) {
        literal = normalized_ranges(parts_.normalizer, text, normalized, literal);
      }
      text = std::move(normalized);
    }
    for (const AddedTokens::Part& part :
         parts_.in_normalized.split(text, find_special_, literal)) {
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

MarkedIds Tokenizer::encode_marked(std::string_view text, std::span<const TextRange> literal,
                                   std::span<const size_t> marks) const {
  if (!is_utf8(text)) throw UsageError("[tokenizer] a marked text is not UTF-8");
  size_t reached = 0;
  const auto check = [&](size_t place) {
    const bool is_between =
        place == text.size() || (place < text.size() && (text[place] & 0xC0) != 0x80);
    if (place < reached || !is_between) {
      throw UsageError("[tokenizer] byte " + std::to_string(place) +
                       " of a marked text is no place between characters, or not in order");
    }
    reached = place;
  };
  for (const size_t mark : marks) check(mark);
  reached = 0;
  for (const TextRange& range : literal) {
    check(range.begin);
    check(range.end);
  }
  return Encoding(*parts_, true).run(text, literal, marks);
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

Bytes Tokenizer::bytes() const {
  constexpr int64_t kSteps = 1 << 18;  // regular expressions, templates and other steps
  Bytes bytes = Bytes(kSteps) + parts_->model_pieces.bytes() + parts_->added_pieces.bytes() +
                parts_->model->bytes() + parts_->in_text.bytes() +
                parts_->in_normalized.bytes();
  for (const auto& [id, piece] : parts_->normalized_pieces) {
    bytes += Bytes(static_cast<int64_t>(piece.size()) + 96);
  }
  return bytes;
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
