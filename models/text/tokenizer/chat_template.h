// Chats as text: how families of models mark who says what.
//
// A tokenizer_config.json holds a program (a Jinja template) for this. It is not run: all that
// it does for chats without tools must be known from one family's templates (chat_styles.h).
// One that does something else is refused by name.
//
// Immutable once made; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/tokenizer/chat_styles.h"
#include "models/text/tokenizer/tokenizer.h"

namespace tidemark {

struct ChatMessage {
  std::string role;  // "system", "user" or "assistant"
  std::string content;
};

struct RenderedChat {
  using Span = tokenizers::TextRange;
  std::string text;  // special tokens included, also the one that begins a text
  // The bytes that the assistant says, with the token that ends its turn.
  std::vector<Span> assistant;
  // The bytes that come from messages. A special token written out there is ordinary text.
  std::vector<Span> contents;
};

class ChatTemplate {
 public:
  using Family = ChatFamily;

  // One of names(). Throws UsageError for another.
  static ChatTemplate named(std::string_view name);
  static std::vector<std::string> names();
  // The family of a Jinja template; `from` is used in messages. `begin` and `end` are the
  // tokens that the template calls bos_token and eos_token. An empty `begin` writes nothing, as
  // in Jinja. Without a `begin`, and with an empty `end`, the family's usual token is written.
  // Throws DataError, naming what is not understood.
  static ChatTemplate recognise(std::string_view jinja, const std::string& from,
                                const std::optional<std::string>& begin = {},
                                const std::string& end = {});
  // The same on the chat_template of a tokenizer_config.json, or on the chat_template.jinja
  // beside it, with the bos_token and eos_token of the former. A bos_token that is null or
  // missing is an empty `begin`. Throws DataError.
  static ChatTemplate read(const std::string& path);

  Family family() const { return style_.family; }
  // The token that ends the assistant's turn.
  std::string turn_end() const;

  // With `add_generation_prompt`, the text ends where the assistant's answer is to begin. What
  // is not UTF-8 becomes U+FFFD. Throws UsageError for a role, or an order of
  // roles, that the family does not have.
  RenderedChat render(std::span<const ChatMessage> messages,
                      bool add_generation_prompt = false) const;

 private:
  explicit ChatTemplate(ChatStyle style);

  ChatStyle style_;
  std::string begin_, end_;  // of a text and of the assistant's turn
};

struct EncodedChat {
  std::vector<int32_t> ids;
  std::vector<bool> is_assistant;  // by id: whether it is the assistant's, so counts in a loss
};
// Special tokens are found around messages, not in them: no message can end its turn.
//
// A token that is partly the assistant's counts as the assistant's. So do tokens just before
// that depend on what the assistant says.
// Throws UsageError if the text is not UTF-8. Takes time that grows with the square of the
// turns if the tokenizer lacks the special tokens around them.
EncodedChat encode_chat(const Tokenizer& tokenizer, const RenderedChat& chat);

}  // namespace tidemark
