// ChatTemplate::render and encode_chat.
#include <algorithm>
#include <string>
#include <utility>

#include "models/text/tokenizer/chat_template.h"
#include "models/text/unicode.h"
#include "runtime/core/errors.h"

namespace tidemark {
namespace {

// As Python's strip.
std::string_view stripped(std::string_view text) {
  size_t begin = text.size();
  size_t end = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    if (is_python_space(next_code_point(text, at))) continue;
    begin = std::min(begin, start);
    end = at;
  }
  return begin < end ? text.substr(begin, end - begin) : std::string_view();
}

// Writes a chat, and notes which parts come from messages and what the assistant says.
class ChatWriter {
 public:
  void write(std::string_view text) { chat_.text += text; }
  void say(std::string_view content) {
    const size_t begin = chat_.text.size();
    write(is_utf8(content) ? std::string(content) : replace_invalid_utf8(content));
    if (begin < chat_.text.size()) chat_.contents.push_back({begin, chat_.text.size()});
  }
  // A whole turn: `open`, what is said, `close` and `after`.
  void turn(std::string_view role, std::string_view open, std::string_view content,
            std::string_view close, std::string_view after = {}) {
    write(open);
    const size_t begin = chat_.text.size();
    say(content);
    write(close);
    if (role == "assistant") chat_.assistant.push_back({begin, chat_.text.size()});
    write(after);
  }
  RenderedChat finish() { return std::move(chat_); }

 private:
  RenderedChat chat_;
};

// User and assistant must take turns, behind at most one system message if `allows_system`.
void check_turns(std::span<const ChatMessage> messages, bool allows_system) {
  bool users_turn = true;
  for (size_t i = 0; i < messages.size(); ++i) {
    if (i == 0 && allows_system && messages[i].role == "system") continue;
    const std::string expected = users_turn ? "user" : "assistant";
    if (messages[i].role != expected) {
      throw UsageError("[chat_template] message " + std::to_string(i) + " is of role '" +
                       messages[i].role + "'; this family expects '" + expected + "' there");
    }
    users_turn = !users_turn;
  }
}

void write_chat_ml(ChatWriter& writer, std::span<const ChatMessage> messages,
                   const ChatStyle& style, const std::string& begin, bool prompts) {
  const auto turn = [&](const std::string& role, const std::string& content) {
    writer.turn(role, "<|im_start|>" + role + '\n', content, "<|im_end|>", "\n");
  };
  if (style.begins) writer.write(begin);
  if (!style.default_system.empty() && messages.front().role != "system") {
    turn("system", style.default_system);
  }
  for (const ChatMessage& message : messages) turn(message.role, message.content);
  if (prompts) writer.write("<|im_start|>assistant\n");
}

void write_llama2(ChatWriter& writer, std::span<const ChatMessage> messages,
                  const std::string& begin, const std::string& end) {
  check_turns(messages, true);
  std::string system;
  for (const ChatMessage& message : messages) {
    if (message.role == "system") {
      system = "<<SYS>>\n" + message.content + "\n<</SYS>>\n\n";
    } else if (message.role == "user") {
      const std::string content = std::exchange(system, {}) + message.content;
      writer.write(begin + "[INST] ");
      writer.say(stripped(content));
      writer.write(" [/INST]");
    } else {
      writer.turn(message.role, {}, ' ' + std::string(stripped(message.content)) + ' ', end);
    }
  }
}

void write_llama3(ChatWriter& writer, std::span<const ChatMessage> messages,
                  const std::string& begin, bool has_dates, bool prompts) {
  const auto open = [](const std::string& role) {
    return "<|start_header_id|>" + role + "<|end_header_id|>\n\n";
  };
  writer.write(begin);
  if (has_dates) {
    // The day that the template falls back to, so that a text does not depend on the day.
    writer.write(open("system") +
                 "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n");
    if (messages.front().role == "system") {
      writer.say(stripped(messages.front().content));
      messages = messages.subspan(1);
    }
    writer.write("<|eot_id|>");
  }
  for (const ChatMessage& message : messages) {
    writer.turn(message.role, open(message.role), stripped(message.content), "<|eot_id|>");
  }
  if (prompts) writer.write(open("assistant"));
}

void write_mistral(ChatWriter& writer, std::span<const ChatMessage> messages,
                   const MistralStyle& style, const std::string& begin,
                   const std::string& end) {
  const bool own_turn = style.system == SystemPlace::kOwnTurn;
  const bool has_system = messages.front().role == "system";
  if (!own_turn) check_turns(messages, style.system != SystemPlace::kNowhere);
  const std::string system = has_system ? messages.front().content + "\n\n" : std::string();
  const size_t first = has_system && !own_turn ? 1 : 0;
  const size_t bearer =
      style.system == SystemPlace::kFirstTurn ? first : messages.size() - 1;  // of the system
  writer.write(begin);
  for (size_t i = first; i < messages.size(); ++i) {
    const auto& [role, content] = messages[i];
    if (role == "assistant") {
      const std::string_view answer = style.trims ? stripped(content) : content;
      writer.turn(role, {}, std::string(style.before) + std::string(answer), end, style.after);
    } else if (role == "system") {
      // The blank behind [INST] is here, too.
      writer.write("[SYSTEM_PROMPT]" + std::string(style.open.substr(6)));
      writer.say(content);
      writer.write("[/SYSTEM_PROMPT]");
    } else {
      writer.write(style.open);
      writer.say(first == 1 && i == bearer ? system + content : content);
      writer.write(style.close);
    }
  }
}

void write_zephyr(ChatWriter& writer, std::span<const ChatMessage> messages,
                  const std::string& end, bool prompts) {
  for (const ChatMessage& message : messages) {
    writer.turn(message.role, "<|" + message.role + "|>\n", message.content, end, "\n");
  }
  if (prompts) writer.write("<|assistant|>\n");
}

}  // namespace

RenderedChat ChatTemplate::render(std::span<const ChatMessage> messages,
                                  bool add_generation_prompt) const {
  if (messages.empty()) throw UsageError("[chat_template] a chat without messages");
  for (const ChatMessage& message : messages) {
    if (message.role != "system" && message.role != "user" && message.role != "assistant") {
      throw UsageError("[chat_template] unknown role '" + message.role + '\'');
    }
  }
  ChatWriter writer;
  switch (style_.family) {
    case Family::kChatMl:
      write_chat_ml(writer, messages, style_, begin_, add_generation_prompt);
      break;
    case Family::kLlama2: write_llama2(writer, messages, begin_, end_); break;
    case Family::kLlama3:
    case Family::kLlama31:
      write_llama3(writer, messages, begin_, style_.family == Family::kLlama31,
                   add_generation_prompt);
      break;
    case Family::kMistral:
      write_mistral(writer, messages, *style_.mistral, begin_, end_);
      break;
    case Family::kZephyr: write_zephyr(writer, messages, end_, add_generation_prompt); break;
  }
  return writer.finish();
}

EncodedChat encode_chat(const Tokenizer& tokenizer, const RenderedChat& chat) {
  std::vector<size_t> marks;
  for (const RenderedChat::Span& span : chat.assistant) {
    marks.insert(marks.end(), {span.begin, span.end});
  }
  MarkedIds marked = tokenizer.encode_marked(chat.text, chat.contents, marks);
  EncodedChat encoded{std::move(marked.ids), {}};
  encoded.is_assistant.resize(encoded.ids.size());
  for (size_t mark = 0; mark < marked.marks.size(); mark += 2) {
    const auto [last, is_exact] = marked.marks[mark + 1];
    const size_t end = std::min(encoded.ids.size(), is_exact ? last : last + 1);
    for (size_t i = marked.marks[mark].before; i < end; ++i) encoded.is_assistant[i] = true;
  }
  return encoded;
}

}  // namespace tidemark
