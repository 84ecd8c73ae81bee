// The ways in which models write chats, and which of them a Jinja template stands for.
//
// Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>

namespace tidemark {

enum class ChatFamily {
  kChatMl,   // <|im_start|>user\n...<|im_end|>\n; SmolLM, Qwen2, Qwen2.5
  kLlama2,   // <s>[INST] <<SYS>>\n...\n<</SYS>>\n\n... [/INST] ... </s>
  kLlama3,   // <|start_header_id|>user<|end_header_id|>\n\n...<|eot_id|>
  kLlama31,  // the same, and a system message with two dates; Llama 3.1, 3.2 and 3.3
  kMistral,  // <s>[INST] ... [/INST]...</s>; also Mixtral
  kZephyr,   // <|user|>\n...</s>\n; also TinyLlama
};

// What Mistral's models do with a system message.
enum class SystemPlace {
  kNowhere,    // it is refused
  kFirstTurn,  // in front of the first message
  kLastTurn,   // in front of the last message; left out if that is the assistant's
  kOwnTurn,    // [SYSTEM_PROMPT]...[/SYSTEM_PROMPT], anywhere
};

// Mistral's templates differ in blanks and in the place of system messages.
struct MistralStyle {
  std::string_view name;
  std::string_view open = {}, close = {};    // of the user's turn
  std::string_view before = {}, after = {};  // an answer: before it, and after its end
  bool trims = false;                        // answers
  SystemPlace system = SystemPlace::kNowhere;
};

struct ChatStyle {
  ChatFamily family;
  std::string default_system =
      {};               // kChatMl: for a chat without a system message; may be empty
  bool begins = false;  // kChatMl: whether a text begins with the token for that
  const MistralStyle* mistral = nullptr;  // kMistral: never null
};

// Of Mistral's styles; null if there is none of this name.
const MistralStyle* find_mistral(std::string_view name);

// What a Jinja template does for chats without tools. Throws DataError, with `from` and the
// piece of the template that is not understood, unless a family's template has the same pieces
// in the same order. Which chats a template refuses does not matter. Takes at most 1 MiB.
ChatStyle recognise_style(std::string_view jinja, const std::string& from);

}  // namespace tidemark
