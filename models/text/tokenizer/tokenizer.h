// Text to ids and back, as a tokenizer.json of Hugging Face or the metadata of a GGUF file
// describes it.
//
// A text passes through: added tokens, found as they are written; the normalizer; the
// pre-tokenizer, which splits it into words; the model (byte-pair encoding or WordPiece), which
// splits words into pieces; the template, which adds special tokens. Ids are those that Hugging
// Face's tokenizers compute, up to the version of Unicode (regex.h, unicode.h).
//
// Immutable once made, and cheap to copy; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/tokenizer/text_range.h"
#include "runtime/core/units.h"

namespace tidemark {

namespace tokenizers {
struct TokenizerParts;
}

struct EncodeOptions {
  bool add_special_tokens = true;  // those around the sequence, such as <s> or [CLS]
  // Whether special tokens written out in a text become their ids. Off, a user's text cannot
  // end a turn of a chat.
  bool find_special_tokens = true;
};

// The ids of a text, and where the bytes that were asked for lie between them.
struct MarkedIds {
  struct Mark {
    size_t before = 0;      // tokens that lie before the byte, whatever follows there
    bool is_exact = false;  // whether no token is on both sides of it
  };
  std::vector<int32_t> ids;
  std::vector<Mark> marks;
};

class Tokenizer {
 public:
  // Reads a tokenizer.json, compressed or not. Its truncation and padding are ignored. Throws
  // DataError, with the place in the file, for what is damaged, contradicts itself or is not
  // supported.
  static Tokenizer read(const std::string& path);
  // The same on the file's content; `name` is used in messages.
  static Tokenizer parse(const std::string& name, std::string_view json);

  explicit Tokenizer(std::shared_ptr<const tokenizers::TokenizerParts> parts)
      : parts_(std::move(parts)) {}

  // What is not UTF-8 counts as U+FFFD. Both throw DataError if a regular expression of the
  // file takes too many steps.
  std::vector<int32_t> encode(std::string_view text, const EncodeOptions& options = {}) const;
  std::vector<int32_t> encode_pair(std::string_view first, std::string_view second,
                                   const EncodeOptions& options = {}) const;
  // Of a text that others wrote parts of, `literal`: special tokens that have a byte there are
  // not found. None are added around the text. `marks` are places in the text. Both ascend; the
  // ranges are disjoint. Throws UsageError if the text is not UTF-8, or a place is within a
  // character.
  MarkedIds encode_marked(std::string_view text, std::span<const tokenizers::TextRange> literal,
                          std::span<const size_t> marks) const;

  // Ids without a piece give nothing: vocabularies of models are often padded. Special tokens
  // are omitted if `skip_special_tokens`.
  std::string decode(std::span<const int32_t> ids, bool skip_special_tokens = true) const;

  // The largest id plus 1.
  int64_t vocabulary_size() const;
  std::optional<int32_t> find(std::string_view piece) const;
  // As it is in the vocabulary, or as normalization leaves an added token; nothing for an id
  // without a piece.
  std::optional<std::string> piece(int32_t id) const;
  bool is_special(int32_t id) const;
  // An upper bound on host memory, shared by copies.
  Bytes bytes() const;

 private:
  friend class TokenStream;
  std::shared_ptr<const tokenizers::TokenizerParts> parts_;
};

// Decodes ids one by one, as a model generates them. A character appears when all its bytes are
// there. All returned texts together equal Tokenizer::decode.
//
// Used by one thread at a time.
class TokenStream {
 public:
  explicit TokenStream(const Tokenizer& tokenizer, bool skip_special_tokens = true);
  TokenStream(TokenStream&&) noexcept;
  TokenStream& operator=(TokenStream&&) noexcept;
  ~TokenStream();

  // Returns the text that is certain now and was not returned before.
  std::string add(int32_t id);
  // The rest. The stream is at its end then.
  std::string end();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tidemark
