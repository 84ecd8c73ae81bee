#include "models/text/tokenizer/known_templates.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <utility>

#include "models/text/tokenizer/jinja_form.h"
#include "models/text/tokenizer/template_pieces.h"

namespace tidemark {
namespace {

constexpr std::array<MistralStyle, 8> kMistral{{
    {.name = "mistral", .open = "[INST] ", .close = " [/INST]"},  // 7B v0.2, Mixtral 8x7B
    {.name = "mistral-v0.1", .open = "[INST] ", .close = " [/INST]", .after = " "},
    {.name = "mixtral",  // 7B v0.2 and Mixtral 8x7B, as changed later
     .open = " [INST] ",
     .close = " [/INST]",
     .before = " ",
     .system = SystemPlace::kFirstTurn},
    {.name = "mixtral-8x22b",
     .open = "[INST] ",
     .close = "[/INST]",
     .before = " ",
     .system = SystemPlace::kLastTurn},
    {.name = "mistral-v0.3",  // also Small 2409
     .open = "[INST] ",
     .close = "[/INST]",
     .before = " ",
     .trims = true,
     .system = SystemPlace::kLastTurn},
    {.name = "mistral-nemo",
     .open = "[INST]",
     .close = "[/INST]",
     .system = SystemPlace::kLastTurn},
    {.name = "mistral-large-2411",
     .open = "[INST] ",
     .close = "[/INST]",
     .before = " ",
     .system = SystemPlace::kOwnTurn},
    {.name = "mistral-small-2501",
     .open = "[INST]",
     .close = "[/INST]",
     .system = SystemPlace::kOwnTurn},
}};

using Texts = std::vector<std::string>;

// Every text of `first` with every text of `second` behind it.
Texts join(const Texts& first, const Texts& second) {
  Texts all;
  for (const std::string& begin : first) {
    for (const std::string& end : second) all.push_back(begin + end);
  }
  return all;
}
Texts maybe(const std::string& text) { return {"", text}; }

// What is written for each role, in any order; the last may be an else.
using RoleText = std::pair<std::string, std::string>;
Texts by_role(std::vector<RoleText> roles) {
  Texts all;
  std::sort(roles.begin(), roles.end());
  do {
    std::string before;
    for (const auto& [role, text] : roles) {
      const std::string condition = fmt::format("if message['role'] == '{}'%}}", role) + text;
      if (&text == &roles.back().second) {
        all.push_back(fmt::format("{}{{%else%}}{}{{%endif%}}", before, text));
        all.push_back(fmt::format("{}{{%el{}{{%endif%}}", before, condition));
      }
      before += (before.empty() ? "{%" : "{%el") + condition;
    }
  } while (std::next_permutation(roles.begin(), roles.end()));
  return all;
}

std::string expression(const std::string& inner) { return "{{" + inner + "}}"; }
std::string when(const std::string& condition, const std::string& text,
                 const std::string& otherwise = {}) {
  return "{%if " + condition + "%}" + text +
         (otherwise.empty() ? std::string() : "{%else%}" + otherwise) + "{%endif%}";
}
std::string set(const char* name, const std::string& value) {
  return fmt::format("{{%set {}={}%}}", name, value);
}
std::string prompt(const std::string& text) {
  return when("add_generation_prompt", expression("'" + text + "'"));
}
const std::string kBegin = "{{bos_token}}", kEndFor = "{%endfor%}";
const std::string kForMessages = "{%for message in messages%}";
const std::string kForLoopMessages = "{%for message in loop_messages%}";
const std::string kHasSystem = "messages[0]['role'] == 'system'";
const std::string kSetLoopMessages = set("loop_messages", "messages");
const std::string kSetToolsNone = when("not tools is defined", set("tools", "none"));

void add(std::vector<KnownTemplate>& known, ChatFamily family, const Texts& templates,
         const MistralStyle* mistral = nullptr) {
  for (const std::string& each : templates) {
    known.push_back(
        {family, tokenizers::template_pieces(tokenizers::jinja_form(each)), mistral});
  }
}

void add_chat_ml(std::vector<KnownTemplate>& known) {
  const auto turn = [](const char* role, const char* content) {
    return expression(fmt::format("'<|im_start|>{}\n'+{}+'<|im_end|>\n'", role, content));
  };
  const std::string any = turn("'+message['role']+'", "message['content']");
  const std::string fixed = "{{'<|im_start|>system\n*<|im_end|>\n'}}";
  const Texts head = join(maybe(when("not add_generation_prompt is defined",
                                     set("add_generation_prompt", "false"))),
                          maybe(kBegin));
  const Texts tail{kEndFor + prompt("<|im_start|>assistant\n")};
  Texts turns = by_role({{"user", turn("user", "message['content']")},
                         {"assistant", turn("assistant", "message['content']")},
                         {"system", turn("system", "message['content']")}});
  turns.push_back(any);
  turns = join(maybe(when("loop.first and messages[0]['role'] != 'system'", fixed)), turns);
  add(known, ChatFamily::kChatMl, join(head, join(join({kForMessages}, turns), tail)));

  // The first system message, then the other messages.
  const std::string first = when(kHasSystem, turn("system", "messages[0]['content']"), fixed);
  const Texts others{when("(message['role'] == 'user') or "
                          "(message['role'] == 'system' and not loop.first) or "
                          "(message['role'] == 'assistant' and not message.tool_calls)",
                          any),
                     when("not (loop.first and message['role'] == 'system')", any)};
  add(known, ChatFamily::kChatMl, join(head, join(join({first + kForMessages}, others), tail)));
}

void add_llama3(std::vector<KnownTemplate>& known) {
  const auto turn = [](const char* role) {
    return fmt::format(
        "'<|start_header_id|>{}<|end_header_id|>\n\n'+message['content']|trim+'<|eot_id|>'",
        role);
  };
  const std::string any = turn("'+message['role']+'");
  const Texts tail{kEndFor + prompt("<|start_header_id|>assistant<|end_header_id|>\n\n")};
  const std::string begin_first = when("loop.index0 == 0", set("content", "bos_token+content"));
  add(known, ChatFamily::kLlama3,
      join({kForMessages, kSetLoopMessages + kForLoopMessages},
           join({set("content", any) + begin_first + "{{content}}"}, tail)));
  Texts turns = by_role({{"user", expression(turn("user"))},
                         {"assistant", expression(turn("assistant"))},
                         {"system", expression(any)}});
  turns.push_back(expression(any));
  add(known, ChatFamily::kLlama3, join(join({kBegin + kForMessages}, turns), tail));

  // Llama 3.1
  const std::string day = set("date_string", "'26 Jul 2024'");
  const std::string today = set("date_string", "strftime_now('%d %b %Y')");
  const Texts dates{
      day, when("not date_string is defined", day),
      when("not date_string is defined", when("strftime_now is defined", today, day))};
  const std::string system =
      when(kHasSystem,
           set("system_message", "messages[0]['content']|trim") +
               set("messages", "messages[1:]"),
           set("system_message", "''")) +
      "{{'<|start_header_id|>system<|end_header_id|>\n\n'}}"
      "{{'Cutting Knowledge Date: December 2023\n'}}{{'Today Date: '+date_string+'\n\n'}}"
      "{{system_message}}{{'<|eot_id|>'}}";
  const Texts head = join(join({kBegin}, maybe(when("not tools_in_user_message is defined",
                                                    set("tools_in_user_message", "true")))),
                          join(join(dates, maybe(kSetToolsNone)), {system + kForMessages}));
  const Texts bodies{expression(any),
                     when("not (message['role'] == 'ipython' or message['role'] == 'tool' or "
                          "'tool_calls' in message)",
                          expression(any))};
  add(known, ChatFamily::kLlama31, join(join(head, bodies), tail));
}

void add_llama2(std::vector<KnownTemplate>& known) {
  const Texts defaults =
      maybe("{%elif USE_DEFAULT_PROMPT == true and not '<<SYS>>' in messages[0]['content']%}" +
            kSetLoopMessages + set("system_message", "'DEFAULT_SYSTEM_MESSAGE'"));
  const std::string system = "{%if " + kHasSystem + "%}" +
                             set("loop_messages", "messages[1:]") +
                             set("system_message", "messages[0]['content']");
  const std::string content =
      "{%else%}" + kSetLoopMessages + set("system_message", "false") + "{%endif%}" +
      kForLoopMessages +
      when("loop.index0 == 0 and system_message != false",
           set("content", "'<<SYS>>\n'+system_message+'\n<</SYS>>\n\n'+message['content']"),
           set("content", "message['content']"));
  const RoleText user{"user", "{{bos_token+'[INST] '+content.strip()+' [/INST]'}}"};
  const RoleText assistant{"assistant", "{{' '+content.strip()+' '+eos_token}}"};
  Texts turns = by_role({user, assistant});
  const Texts more = by_role(
      {user, assistant, {"system", "{{'<<SYS>>\n'+content.strip()+'\n<</SYS>>\n\n'}}"}});
  turns.insert(turns.end(), more.begin(), more.end());
  add(known, ChatFamily::kLlama2,
      join(join({system}, defaults), join(join({content}, turns), {kEndFor})));
}

void add_mistral(std::vector<KnownTemplate>& known) {
  const std::string system = when(
      kHasSystem,
      set("system_message", "messages[0]['content']") + set("loop_messages", "messages[1:]"),
      kSetLoopMessages);
  const std::string users =
      set("user_messages", "loop_messages|selectattr('role','equalto','user')|list");
  // Only checks that roles take turns.
  const std::string counted =
      set("ns", "namespace()") + set("ns.index", "0") + kForLoopMessages +
      when(
          "not (message['role'] == 'tool' or message['role'] == 'tool_results' or "
          "(message.tool_calls is defined and message.tool_calls is not none))",
          set("ns.index", "ns.index+1")) +
      kEndFor;
  const Texts head = join(join(join({system}, maybe(kSetToolsNone)), maybe(users)),
                          join(maybe(counted), {kBegin + kForLoopMessages}));
  for (const MistralStyle& style : kMistral) {
    const auto user = [&](const char* content) {
      return expression(fmt::format("'{}'+{}+'{}'", style.open, content, style.close));
    };
    std::string answer =
        style.trims ? "message['content']|trim+eos_token" : "message['content']+eos_token";
    if (!style.before.empty()) answer = fmt::format("'{}'+{}", style.before, answer);
    if (!style.after.empty()) answer += fmt::format("+'{}'", style.after);
    std::string said = user("message['content']");
    if (style.system == SystemPlace::kFirstTurn || style.system == SystemPlace::kLastTurn) {
      const char* place = style.system == SystemPlace::kFirstTurn ? "first" : "last";
      said = when(fmt::format("loop.{} and system_message is defined", place),
                  user("system_message+'\n\n'+message['content']"), said);
      add(known, ChatFamily::kMistral,
          join(head,
               join(by_role({{"user", said}, {"assistant", expression(answer)}}), {kEndFor})),
          &style);
      continue;
    }
    std::vector<RoleText> roles{{"user", said}, {"assistant", expression(answer)}};
    if (style.system == SystemPlace::kOwnTurn) {
      const std::string_view blank = style.open.substr(std::string_view("[INST]").size());
      roles.emplace_back("system",
                         expression(fmt::format("'[SYSTEM_PROMPT]{}'+message['content'"
                                                "]+'[/SYSTEM_PROMPT]'",
                                                blank)));
    }
    add(known, ChatFamily::kMistral,
        join({kBegin + kForMessages}, join(by_role(roles), {kEndFor})), &style);
  }
}

void add_zephyr(std::vector<KnownTemplate>& known) {
  // The line break behind a turn is text or written.
  for (const bool is_text : {true, false}) {
    const auto turn = [&](const char* role) {
      return RoleText{role, fmt::format("{{{{'<|{}|>\n'+message['content']+eos_token{}}}}}{}",
                                        role, is_text ? "" : "+'\n'", is_text ? "\n" : "")};
    };
    const std::string prompt = is_text ? "{{'<|assistant|>'}}\n" : "{{'<|assistant|>\n'}}";
    add(known, ChatFamily::kZephyr,
        join(join({kForMessages}, by_role({turn("user"), turn("system"), turn("assistant")})),
             {kEndFor + when("add_generation_prompt", prompt),
              when("loop.last and add_generation_prompt", prompt) + kEndFor}));
  }
}

}  // namespace

const std::vector<KnownTemplate>& known_templates() {
  static const std::vector<KnownTemplate> kKnown = [] {
    std::vector<KnownTemplate> known;
    add_chat_ml(known);
    add_llama3(known);
    add_llama2(known);
    add_mistral(known);
    add_zephyr(known);
    return known;
  }();
  return kKnown;
}

const MistralStyle* find_mistral(std::string_view name) {
  const auto found =
      std::find_if(kMistral.begin(), kMistral.end(),
                   [&](const MistralStyle& style) { return style.name == name; });
  return found == kMistral.end() ? nullptr : &*found;
}

}  // namespace tidemark
