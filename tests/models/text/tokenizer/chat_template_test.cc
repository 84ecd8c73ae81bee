#include "models/text/tokenizer/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "models/text/tokenizer/jinja_form.h"
#include "runtime/core/errors.h"
#include "tests/models/text/tokenizer/golden_tokenizers.h"

namespace tidemark {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::golden_chats;
using ::testing::HasSubstr;
using Messages = std::vector<ChatMessage>;

std::string said(const RenderedChat& chat) {
  std::string all;
  for (const auto& [begin, end] : chat.assistant) {
    all += '{' + chat.text.substr(begin, end - begin) + '}';
  }
  return all;
}

// What Jinja rendered from a template; null for a chat that the template refuses.
void expect_rendered(const ChatTemplate& chat, const nlohmann::json& wanted,
                     const std::string& name) {
  size_t rendered = 0;
  for (size_t i = 0; i < wanted["plain"].size(); ++i) {
    Messages messages;
    for (const auto& each : golden_chats()["conversations"][i]) {
      messages.push_back({each[0], each[1]});
    }
    for (const bool prompts : {false, true}) {
      const nlohmann::json& text = wanted[prompts ? "prompted" : "plain"][i];
      if (text.is_null()) {
        EXPECT_THROW(chat.render(messages, prompts), UsageError) << name << ", chat " << i;
        continue;
      }
      EXPECT_EQ(chat.render(messages, prompts).text, text.get<std::string>()) << name;
      ++rendered;
    }
  }
  EXPECT_GE(rendered, 4U) << name;
}

TEST(ChatTemplate, RendersAsJinja) {
  for (const auto& wanted : golden_chats()["chats"]) {
    const auto chat = ChatTemplate::recognise(wanted["template"].get<std::string>(), "t");
    const std::string family = wanted["family"];
    EXPECT_EQ(chat.family(), ChatTemplate::named(family).family()) << family;
    expect_rendered(chat, wanted, wanted["template"]);
  }
}

TEST(ChatTemplate, RendersAsThePublishedTemplates) {
  const nlohmann::json& models = golden_chats()["real"];
  EXPECT_EQ(models.size(), ChatTemplate::names().size());
  for (const auto& [name, wanted] : models.items()) {
    expect_rendered(ChatTemplate::named(name), wanted, name);
  }
}

// Those templates themselves, which are not in the repository.
TEST(ChatTemplate, RecognisesPublishedTemplates) {
  const char* const path = std::getenv("TIDEMARK_CHAT_TEMPLATES");
  if (path == nullptr) GTEST_SKIP() << "needs TIDEMARK_CHAT_TEMPLATES=templates.json";
  const auto templates = nlohmann::json::parse(read_text_file(path));
  for (const auto& [name, wanted] : golden_chats()["real"].items()) {
    expect_rendered(ChatTemplate::recognise(templates[name].get<std::string>(), name), wanted,
                    name);
  }
}

TEST(ChatTemplate, MarksWhatTheAssistantSays) {
  const Messages chat{{"user", "u"}, {"assistant", "x"}, {"user", "v"}, {"assistant", "y"}};
  const std::pair<const char*, const char*> wanted[] = {
      {"chatml", "{x<|im_end|>}{y<|im_end|>}"},
      {"llama-2", "{ x </s>}{ y </s>}"},
      {"llama-3", "{x<|eot_id|>}{y<|eot_id|>}"},
      {"llama-3.1", "{x<|eot_id|>}{y<|eot_id|>}"},
      {"mistral", "{x</s>}{y</s>}"},
      {"zephyr", "{x</s>}{y</s>}"}};
  for (const auto& [name, spans] : wanted) {
    EXPECT_EQ(said(ChatTemplate::named(name).render(chat)), spans) << name;
  }
}

TEST(ChatTemplate, KnowsDefaultSystemMessages) {
  const Messages chat{{"user", "u"}};
  EXPECT_EQ(ChatTemplate::named("qwen2").render(chat, true).text,
            "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"
            "<|im_start|>user\nu<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(ChatTemplate::named("chatml").render(chat).text, "<|im_start|>user\nu<|im_end|>\n");
  EXPECT_THAT(ChatTemplate::named("smollm2").render(chat).text, HasSubstr("named SmolLM"));
}

std::string fault_of(const std::string& jinja) {
  try {
    ChatTemplate::recognise(jinja, "config.json");
  } catch (const DataError& error) {
    return error.what();
  }
  return {};
}

TEST(ChatTemplate, RefusesUnknownFamilies) {
  for (const char* const unknown : {"", "{{ messages }}", "{{ '", "{%-", "{#", "{% endif %}"}) {
    EXPECT_THAT(fault_of(unknown), AllOf(HasSubstr("config.json"), HasSubstr("known family")));
  }
  EXPECT_THAT(fault_of("{% for message in messages %}{{ '<turn>' + message['content'] }}"),
              HasSubstr("writes '{{'<turn>'+message['content']}}'"));
  EXPECT_THROW(ChatTemplate::named("gemma"), UsageError);
}

// Each is of a family, but for one thing.
TEST(ChatTemplate, NamesWhatItDoesNotUnderstand) {
  const std::string turn =
      "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n'}}";
  const std::string loop = "{% for message in messages %}" + turn + "{% endfor %}";
  const std::string prompt =
      "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";
  EXPECT_EQ(fault_of(loop + prompt), "");
  EXPECT_THAT(fault_of(loop), HasSubstr("lacks '{{'<|im_start|>assistant\\n'}}'"));
  EXPECT_THAT(fault_of(loop + "{{ '<|im_start|>assistant\n' }}"), HasSubstr("assistant"))
      << "also without being asked for a prompt";
  EXPECT_THAT(fault_of("{{ '<think>' }}" + loop + prompt), HasSubstr("has '{{'<think>'}}'"));
  EXPECT_THAT(fault_of(loop + "{% if x %}{{ y }}{% endif %}" + prompt),
              HasSubstr("has '{%ifx%}'"));
  EXPECT_THAT(fault_of("{{ bos_token }}\n" + loop + prompt), HasSubstr("has '\\n'"));
  EXPECT_THAT(fault_of(loop + "{{ bos_token }}" + prompt), HasSubstr("has '{{bos_token}}'"));
  // Tools do not matter, unless a branch is also taken without them.
  EXPECT_EQ(fault_of("{% if tools %}{{ x }}{% endif %}" + loop + prompt), "");
  EXPECT_THAT(fault_of("{% if tools or x %}{{ x }}{% endif %}" + loop + prompt),
              HasSubstr("'{%iftoolsorx%}'"));
  EXPECT_THAT(fault_of("{% if tools is none %}{{ x }}{% endif %}" + loop + prompt),
              HasSubstr("'{%iftoolsisnone%}'"));
}

// Each has only pieces of its family, but Jinja leaves out turns, or writes something else.
TEST(ChatTemplate, RefusesKnownPiecesInOtherPlaces) {
  const std::string turn =
      "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n'}}";
  const std::string open = "{% for message in messages %}", close = "{% endfor %}";
  const std::string prompt =
      "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";
  const std::string loop = open + turn + close;
  const auto only = [](const std::string& condition, const std::string& text) {
    return "{% if " + condition + " %}" + text + "{% endif %}";
  };
  EXPECT_EQ(fault_of(loop + prompt), "");
  for (const std::string& other :
       {open + only("message['role'] == 'user'", turn) + close + prompt,
        open + only("not (loop.first and message['role'] == 'system')", turn) + close + prompt,
        "{% set messages = messages[1:] %}" + loop + prompt, prompt + loop,
        open + turn + prompt + close, loop + loop + prompt, open + turn + turn + close + prompt,
        only("add_generation_prompt", loop) + prompt,
        only("messages[0]['role'] == 'system'", "{{ bos_token }}") + loop + prompt,
        open + only("loop.first", "{{ bos_token }}") + turn + close + prompt,
        open + turn + prompt, loop + prompt + "{% endif %}", loop + "{% else %}" + prompt,
        // These hold without tools.
        only("'tool_calls' in message == false", "{{ 'x' }}") + loop + prompt,
        only("tools is defined", "{{ 'x' }}") + loop + prompt,
        only("toolsmith", "{{ 'x' }}") + loop + prompt,
        only("message['role'] == 'tool' == false", "{{ 'x' }}") + loop + prompt,
        only("tools and x or y", "{{ 'x' }}") + loop + prompt,
        only("x", "{{ raise_exception('a') if false else 'x' }}") + loop + prompt,
        "{{ raise_exception('a') }}" + loop + prompt}) {
    EXPECT_THAT(fault_of(other), HasSubstr("is not understood")) << other;
  }
  EXPECT_EQ(fault_of(only("tools", "{{ 'x' }}") + open +
                     only("message['role'] == 'x'", "{{ raise_exception('y') }}") + turn +
                     close + prompt),
            "");

  // Llama 2 with another condition for its default, and Mistral with other turns.
  const std::string llama2 = golden_chats()["chats"][3]["template"];
  const auto changed = [](std::string text, const std::string& what, const std::string& by) {
    return text.replace(text.find(what), what.size(), by);
  };
  const std::string preset =
      " %}{% set loop_messages = messages %}{% set system_message = 'DEFAULT_SYSTEM_MESSAGE' "
      "%}{% else %}";
  EXPECT_EQ(fault_of(changed(llama2, "{% else %}",
                             "{% elif USE_DEFAULT_PROMPT == true and not '<<SYS>>' in "
                             "messages[0]['content']" +
                                 preset)),
            "");
  EXPECT_THAT(fault_of(changed(llama2, "{% else %}",
                               "{% elif USE_DEFAULT_PROMPT == true or true" + preset)),
              HasSubstr("has '{%elifUSE_DEFAULT_PROMPT==trueortrue%}'"));
  const std::string mistral = golden_chats()["chats"][9]["template"];
  EXPECT_EQ(fault_of(mistral), "");
  EXPECT_THAT(
      fault_of(changed(mistral, "in loop_messages", "in loop_messages | rejectattr('role')")),
      HasSubstr("rejectattr"));
}

// Not even large templates that are made for it take long, or much of the stack.
TEST(ChatTemplate, HostileTemplatesAreRefused) {
  const auto repeated = [](const std::string& text, size_t bytes) {
    std::string all;
    while (all.size() + text.size() <= bytes) all += text;
    return all;
  };
  constexpr size_t kMost = 1 << 20;
  EXPECT_THAT(fault_of(std::string(kMost + 1, 'a')), HasSubstr("more than 1 MiB"));
  EXPECT_THAT(fault_of("{% if tools" + repeated(" or tools", kMost - 20) + " %}"),
              HasSubstr("known family"));
  for (const char* const part :
       {"a", " ", "{{a}}", "{%a%}", "{%if a%}", "{%if a%}{{a}}", "{%if a%}{%endif%}",
        "{%if a%}x", "{%for a%}", "{##}", "message.role", "{{message.content}}", "{{'a'+'b'}}",
        "{{'", "{%-a%} "}) {
    for (const char* const begin : {"x", "{{'"}) {
      EXPECT_NE(fault_of(begin + repeated(part, kMost - 3)), "") << begin << part;
    }
  }
  const std::string blanks(kMost / 2, ' ');
  for (const char* const part : {"{##}", "{%a%}", "{#-#}", "{{a}} "}) {
    EXPECT_NE(fault_of(blanks + repeated(part, kMost / 2)), "") << part;
    EXPECT_NE(fault_of('x' + blanks + repeated(part, kMost / 2 - 1)), "") << part;
    EXPECT_NE(fault_of(blanks.substr(1) + 'x' + repeated(part, kMost / 2)), "") << part;
  }
  const std::string nested =
      repeated("{%if a%}{{a}}", kMost / 2) + repeated("{%endif%}", kMost / 2);
  EXPECT_NE(fault_of(nested), "");
}

TEST(JinjaForm, LayoutDoesNotMatter) {
  const std::string form = tokenizers::jinja_form("{%if a%}{{'x\n'+b}}{%endif%}");
  EXPECT_TRUE(tokenizers::has_part(form, "{{'x\n'+b}}"));
  for (const char* same :
       {"{% if a %}\n{{ \"x\\n\" + b }}\n  {%- endif %}",
        "{%- if a -%}  \n {{'x\\n' + b}}{% endif %}\n", "  {% if a %}\n{{'x\n'+b}}{% endif %}",
        "{# c #}\n{% if a %}{#- d -#}\n {{'x\n'+b}}{% endif %}"}) {
    EXPECT_EQ(tokenizers::jinja_form(same), form) << same;
  }
  EXPECT_EQ(tokenizers::jinja_form("  {# c #}\n  {% if a %}\n  {% if b %}"), "{%ifa%}{%ifb%}");
  EXPECT_EQ(tokenizers::jinja_form("{{ 'x' + '\n' + b + '+' ~ 'y' }}"),
            tokenizers::jinja_form("{{ 'x\n' + b + '+' ~ 'y' }}"));
  EXPECT_NE(tokenizers::jinja_form("{% if a %}{{ 'x\n' + b }}\n{% endif %}"), form)
      << "a line break behind an expression is text";
}

TEST(ChatTemplate, ReadsATokenizerConfig) {
  const std::string folder = ::testing::TempDir();
  const std::string path = folder + "/tokenizer_config.json";
  nlohmann::json config{{"eos_token", {{"content", "<end>"}}}, {"bos_token", nullptr}};
  config["chat_template"] = golden_chats()["chats"].back()["template"];
  write_text_file(path, config.dump());
  const Messages chat{{"assistant", "x"}};
  EXPECT_EQ(ChatTemplate::read(path).render(chat).text, "<|assistant|>\nx<end>\n");

  write_text_file(folder + "/chat_template.jinja", config["chat_template"].get<std::string>());
  config.erase("chat_template");
  write_text_file(path, config.dump());
  EXPECT_EQ(ChatTemplate::read(path).render(chat).text, "<|assistant|>\nx<end>\n");
}

// Qwen's configurations have a bos_token of null, for which Jinja writes nothing.
TEST(ChatTemplate, WithoutABeginningTokenNothingIsWritten) {
  const std::string path = ::testing::TempDir() + "/tokenizer_config.json";
  const std::string chatml =
      "{{ bos_token }}" + golden_chats()["chats"][0]["template"].get<std::string>();
  const std::string mistral = golden_chats()["chats"][6]["template"];
  const Messages chat{{"system", "x"}}, users{{"user", "x"}};
  nlohmann::json config{{"chat_template", chatml}, {"bos_token", nullptr}};
  write_text_file(path, config.dump());
  EXPECT_EQ(ChatTemplate::read(path).render(chat).text, "<|im_start|>system\nx<|im_end|>\n");
  config["bos_token"] = "<b>";
  write_text_file(path, config.dump());
  EXPECT_EQ(ChatTemplate::read(path).render(chat).text, "<b><|im_start|>system\nx<|im_end|>\n");
  config = {{"chat_template", mistral}, {"eos_token", "<end>"}};
  write_text_file(path, config.dump());
  EXPECT_EQ(ChatTemplate::read(path).render(users).text, "[INST] x [/INST]");
}

TEST(ChatTemplate, RefusesRolesOutOfTurn) {
  const auto render = [](const char* name, const Messages& chat) {
    return ChatTemplate::named(name).render(chat);
  };
  EXPECT_THROW(render("chatml", {}), UsageError);
  EXPECT_THROW(render("chatml", {{"tool", "x"}}), UsageError);
  EXPECT_THROW(render("llama-2", {{"assistant", "x"}}), UsageError);
  EXPECT_THROW(render("llama-2", {{"user", "x"}, {"user", "x"}}), UsageError);
  EXPECT_THROW(render("mistral", {{"system", "x"}, {"user", "x"}}), UsageError);
}

// Each family, with tokenizers that look for special tokens before normalization and after it.
TEST(EncodeChat, OrdinaryTextsHaveTheIdsOfTheWholeText) {
  const Messages chat{{"user", "What is 12 + 3?\n"},
                      {"assistant", " Caf\u00e9 15. "},
                      {"user", "\u20AC [INST"},
                      {"assistant", "x"}};
  nlohmann::json normalized = testing::golden_case("llama2")["tokenizer"];
  for (auto& token : normalized["added_tokens"]) token["normalized"] = true;
  const Tokenizer tokenizers[] = {
      testing::golden_tokenizer("smollm2"), testing::golden_tokenizer("llama2"),
      testing::golden_tokenizer("mistral"), Tokenizer::parse("normalized", normalized.dump())};
  for (const Tokenizer& tokenizer : tokenizers) {
    for (const std::string& family : ChatTemplate::names()) {
      const RenderedChat rendered = ChatTemplate::named(family).render(chat);
      const EncodedChat encoded = encode_chat(tokenizer, rendered);
      EXPECT_EQ(encoded.ids, tokenizer.encode(rendered.text, {.add_special_tokens = false}))
          << family;
      ASSERT_EQ(encoded.is_assistant.size(), encoded.ids.size());
      std::vector<int32_t> learnt;
      for (size_t i = 0; i < encoded.ids.size(); ++i) {
        if (encoded.is_assistant[i]) learnt.push_back(encoded.ids[i]);
      }
      EXPECT_THAT(tokenizer.decode(learnt, false), HasSubstr("15.")) << family;
    }
  }
}

TEST(EncodeChat, MessagesCannotEndTheirTurns) {
  nlohmann::json normalized = testing::golden_case("llama2")["tokenizer"];
  for (auto& token : normalized["added_tokens"]) token["normalized"] = true;
  const struct {
    Tokenizer tokenizer;
    std::string family, end;
  } cases[] = {{testing::golden_tokenizer("smollm2"), "chatml", "<|im_end|>"},
               {testing::golden_tokenizer("llama2"), "llama-2", "</s>"},
               {Tokenizer::parse("normalized", normalized.dump()), "llama-2", "</s>"}};
  for (const auto& [tokenizer, family, end] : cases) {
    const auto count = [&](const std::string& user, const std::string& assistant) {
      const Messages chat{{"user", user}, {"assistant", assistant}};
      const EncodedChat encoded =
          encode_chat(tokenizer, ChatTemplate::named(family).render(chat));
      return std::count(encoded.ids.begin(), encoded.ids.end(), *tokenizer.find(end));
    };
    const auto plain = count("Hi", "Ho");
    EXPECT_GE(plain, 1);
    EXPECT_EQ(count("Hi " + end + " Hi", "Ho"), plain) << family;
    EXPECT_EQ(count(end, end), plain) << family;
    EXPECT_EQ(count(end + end, "a " + end), plain) << family;
  }
}

TEST(EncodeChat, WhatIsNotUtf8IsReplaced) {
  const Tokenizer tokenizer = testing::golden_tokenizer("smollm2");
  const ChatTemplate chat = ChatTemplate::named("chatml");
  const auto ids = [&](const std::string& said) {
    return encode_chat(tokenizer, chat.render(Messages{{"assistant", said}})).ids;
  };
  EXPECT_EQ(ids("a\xE2\x82"), ids("a\uFFFD"));
  EXPECT_THROW(encode_chat(tokenizer, {"\xFF", {}, {}}), UsageError);
  const RenderedChat::Span within{0, 1}, behind{0, 4};
  EXPECT_THROW(encode_chat(tokenizer, {"\u20AC", {within}, {}}), UsageError);
  EXPECT_THROW(encode_chat(tokenizer, {"\u20AC", {}, {within}}), UsageError);
  EXPECT_THROW(encode_chat(tokenizer, {"\u20AC", {behind}, {}}), UsageError);
}

TEST(EncodeChat, CountsTheAssistantsTokens) {
  const Tokenizer tokenizer = testing::golden_tokenizer("smollm2");
  const Messages chat{
      {"user", "What?"}, {"assistant", "The file."}, {"user", "a"}, {"assistant", "\u20AC"}};
  const EncodedChat encoded =
      encode_chat(tokenizer, ChatTemplate::named("chatml").render(chat));
  ASSERT_EQ(encoded.ids.size(), encoded.is_assistant.size());
  std::vector<int32_t> learnt;
  for (size_t i = 0; i < encoded.ids.size(); ++i) {
    if (encoded.is_assistant[i]) learnt.push_back(encoded.ids[i]);
  }
  EXPECT_EQ(tokenizer.decode(learnt, false), "The file.<|im_end|>\u20AC<|im_end|>");
  EXPECT_EQ(tokenizer.decode(encoded.ids, false),
            ChatTemplate::named("chatml").render(chat).text);
}

}  // namespace
}  // namespace tidemark
