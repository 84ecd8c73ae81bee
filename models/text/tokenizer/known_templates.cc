#include "models/text/tokenizer/known_templates.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>

#include "models/text/tokenizer/jinja_form.h"

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

// With the quotes of a form for '.
Pieces as_in_forms(Pieces pieces) {
  for (std::string& piece : pieces) {
    std::replace(piece.begin(), piece.end(), '\'', tokenizers::kJinjaQuote);
  }
  return pieces;
}

void add_chat_ml(std::vector<KnownTemplate>& known) {
  const std::string no_calls =
      "{%if(message['role']=='user')or(message['role']=='system'andnotloop.first)or"
      "(message['role']=='assistant'andnotmessage.tool_calls)%}";
  const Pieces allowed{kBeginPiece,
                       kDefaultSystemPiece,
                       "{{'<|im_start|>system\n'+messages[0]['content']+'<|im_end|>\n'}}",
                       "{%ifloop.firstandmessages[0]['role']!='system'%}",
                       no_calls,
                       "{%ifnot(loop.firstandmessage['role']=='system')%}"};
  const std::string prompt = "prompt:{{'<|im_start|>assistant\n'}}";
  known.push_back(
      {ChatFamily::kChatMl,
       {"{{'<|im_start|>'+message['role']+'\n'+message['content']+'<|im_end|>\n'}}", prompt},
       allowed});
  known.push_back({ChatFamily::kChatMl,
                   {"{{'<|im_start|>user\n'+message['content']+'<|im_end|>\n'}}",
                    "{{'<|im_start|>assistant\n'+message['content']+'<|im_end|>\n'}}",
                    "{{'<|im_start|>system\n'+message['content']+'<|im_end|>\n'}}", prompt},
                   allowed});
}

// A turn of Llama 3; `role` is the inner part of a string.
std::string llama3_turn(const char* role) {
  return fmt::format(
      "'<|start_header_id|>{}<|end_header_id|>\n\n'+message['content']|trim+'<|eot_id|>'",
      role);
}
std::string expression(const std::string& inner) { return "{{" + inner + "}}"; }

void add_llama3(std::vector<KnownTemplate>& known) {
  const std::string turn = llama3_turn("'+message['role']+'");
  const std::string prompt = "prompt:{{'<|start_header_id|>assistant<|end_header_id|>\n\n'}}";
  const std::string no_calls =
      "{%ifnot(message['role']=='ipython'ormessage['role']=='tool'or'tool_calls'inmessage)%}";
  known.push_back(
      {ChatFamily::kLlama31,
       {kBeginPiece, "{{'<|start_header_id|>system<|end_header_id|>\n\n'}}",
        "{{'Cutting Knowledge Date: December 2023\n'}}",
        "{{'Today Date: '+date_string+'\n\n'}}", "{{system_message}}", "{{'<|eot_id|>'}}",
        "{%setdate_string='26 Jul 2024'%}", "{%setsystem_message=messages[0]['content']|trim%}",
        "{%setsystem_message=''%}", expression(turn), prompt},
       {"{%ifnotdate_stringisdefined%}", "{%ifstrftime_nowisdefined%}",
        "{%setdate_string=strftime_now('%d %b %Y')%}",
        "{%ifnottools_in_user_messageisdefined%}", "{%settools_in_user_message=true%}",
        no_calls}});
  known.push_back({ChatFamily::kLlama3,
                   {"{%setcontent=" + turn + "%}", "{%ifloop.index0==0%}",
                    "{%setcontent=bos_token+content%}", "{{content}}", prompt}});
  known.push_back({ChatFamily::kLlama3,
                   {kBeginPiece, expression(llama3_turn("user")),
                    expression(llama3_turn("assistant")), expression(turn), prompt}});
  known.push_back({ChatFamily::kLlama3, {kBeginPiece, expression(turn), prompt}});
}

void add_llama2(std::vector<KnownTemplate>& known) {
  known.push_back(
      {ChatFamily::kLlama2,
       {"{%setsystem_message=messages[0]['content']%}",
        "{%ifloop.index0==0andsystem_message!=false%}",
        "{%setcontent='<<SYS>>\n'+system_message+'\n<</SYS>>\n\n'+message['content']%}",
        "{%setcontent=message['content']%}",
        "{{bos_token+'[INST] '+content.strip()+' [/INST]'}}",
        "{{' '+content.strip()+' '+eos_token}}"},
       {"{%setsystem_message=false%}", "{%elifUSE_DEFAULT_PROMPT==true*%}",
        "{%setsystem_message='DEFAULT_SYSTEM_MESSAGE'%}",
        "{{'<<SYS>>\n'+content.strip()+'\n<</SYS>>\n\n'}}"}});
}

void add_mistral(std::vector<KnownTemplate>& known) {
  for (const MistralStyle& style : kMistral) {
    const auto user = [&](const char* content) {
      return expression(fmt::format("'{}'+{}+'{}'", style.open, content, style.close));
    };
    std::string answer =
        style.trims ? "message['content']|trim+eos_token" : "message['content']+eos_token";
    if (!style.before.empty()) answer = fmt::format("'{}'+{}", style.before, answer);
    if (!style.after.empty()) answer += fmt::format("+'{}'", style.after);
    Pieces needed{kBeginPiece, user("message['content']"), expression(answer)};
    if (style.system == SystemPlace::kOwnTurn) {
      needed.push_back(
          expression(fmt::format("'[SYSTEM_PROMPT]{}'+message['content']+'[/SYSTEM_PROMPT]'",
                                 style.open.substr(std::string_view("[INST]").size()))));
    } else if (style.system != SystemPlace::kNowhere) {
      const bool first = style.system == SystemPlace::kFirstTurn;
      needed.emplace_back(first ? "{%ifloop.firstandsystem_messageisdefined%}"
                                : "{%ifloop.lastandsystem_messageisdefined%}");
      needed.emplace_back("{%setsystem_message=messages[0]['content']%}");
      needed.push_back(user("system_message+'\n\n'+message['content']"));
    }
    known.push_back({.family = ChatFamily::kMistral, .needed = needed, .mistral = &style});
  }
}

void add_zephyr(std::vector<KnownTemplate>& known) {
  const auto turns = [](const char* end) {
    Pieces pieces;
    for (const char* const role : {"user", "system", "assistant"}) {
      pieces.push_back(
          expression(fmt::format("'<|{}|>\n'+message['content']+eos_token{}", role, end)));
    }
    return pieces;
  };
  Pieces broken = turns(""), inside = turns("+'\n'");
  broken.emplace_back("prompt:{{'<|assistant|>'}}");
  inside.emplace_back("prompt:{{'<|assistant|>\n'}}");
  known.push_back({ChatFamily::kZephyr, broken, {}, /*breaks_lines=*/true});
  known.push_back({ChatFamily::kZephyr, inside});
}

}  // namespace

const Pieces& pieces_of_any() {
  static const Pieces kAllowed = as_in_forms({
      "{%formessageinmessages%}",
      "{%formessageinloop_messages%}",
      "{%formessageinloop_messages|rejectattr(*%}",
      "{%ifmessages[0]['role']=='system'%}",
      "{%setloop_messages=messages[1:]%}",
      "{%setloop_messages=messages%}",
      "{%setmessages=messages[1:]%}",
      "{%setuser_messages=*|selectattr('role','equalto','user')|list%}",
      "{%if(message['role']=='user')!=(loop.index0%2==0)%}",
      "{%if(message['role']=='user')!=(ns.index%2==0)%}",
      "{%setns=namespace()%}",
      "{%setns.index=0%}",
      "{%setns.index=ns.index+1%}",
      "{%ifnot(message['role']=='tool'ormessage['role']=='tool_results'or(*%}",
      "{%ifmessage['role']=='user'%}",
      "{%ifmessage['role']=='system'%}",
      "{%elifmessage['role']=='user'%}",
      "{%elifmessage['role']=='system'%}",
      "{%elifmessage['role']=='assistant'%}",
      "{%ifadd_generation_prompt%}",
      "{%ifloop.lastandadd_generation_prompt%}",
      "{%ifnotadd_generation_promptisdefined%}",
      "{%setadd_generation_prompt=false%}",
      "{%ifnottoolsisdefined%}",
      "{%settools=none%}",
  });
  return kAllowed;
}

const std::vector<KnownTemplate>& known_templates() {
  static const std::vector<KnownTemplate> kKnown = [] {
    std::vector<KnownTemplate> known;
    add_chat_ml(known);
    add_llama3(known);
    add_llama2(known);
    add_mistral(known);
    add_zephyr(known);
    for (KnownTemplate& each : known) {
      each.needed = as_in_forms(each.needed);
      each.allowed = as_in_forms(each.allowed);
    }
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
