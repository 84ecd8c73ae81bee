#include "models/text/tuning/tuning_line.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "models/text/unicode.h"
#include "runtime/core/errors.h"
#include "runtime/core/located_json.h"

namespace tidemark {
namespace {

using nlohmann::json;
using Form = TuningData::Form;

// Others are not kept, whatever they hold.
constexpr std::array<std::string_view, 4> kMembers{"messages", "prompt", "completion", "text"};

class LineReader {
 public:
  explicit LineReader(const LineFault& fault) : fault_(fault) {}

  json parse(std::string_view line) const {
    for (size_t at = 0; at < line.size();) {
      const size_t start = at;
      if (next_code_point(line, at) == kReplacement && at - start == 1) {
        fail("is not UTF-8", start);
      }
    }
    const auto visit = [&](int depth, json::parse_event_t event, json& value) {
      if (depth > kMaxJsonDepth) {
        fail("is nested more than " + std::to_string(kMaxJsonDepth) + " deep");
      }
      return depth != 1 || event != json::parse_event_t::key ||
             std::find(kMembers.begin(), kMembers.end(), value.get_ref<std::string&>()) !=
                 kMembers.end();
    };
    try {
      json parsed = json::parse(line.begin(), line.end(), visit);
      if (!parsed.is_object()) fail("is not a JSON object");
      return parsed;
    } catch (const json::parse_error& error) {
      fail("is not JSON: " + describe_json_fault(error),
           std::min(line.size(), std::max<size_t>(error.byte, 1) - 1));
    } catch (const json::out_of_range& error) {  // a number too large for a double
      fail("is not JSON: " + describe_json_fault(error));
    }
  }

  const json& member(const json& object, const std::string& key, const std::string& in) const {
    const auto found = object.find(key);
    if (found == object.end() || found->is_null()) {
      fail("lacks '" + in + key + '\'' +
           (in.empty() ? "; every line has to have the form of the first" : ""));
    }
    return *found;
  }
  const std::string& text(const json& object, const std::string& key,
                          const std::string& in = "") const {
    const json& value = member(object, key, in);
    if (!value.is_string()) fail("has no text in '" + in + key + '\'');
    return value.get_ref<const std::string&>();
  }
  const std::string& some_text(const json& object, const std::string& key) const {
    const std::string& value = text(object, key);
    if (value.empty()) fail("has an empty '" + key + '\'');
    return value;
  }

  std::vector<ChatMessage> messages(const json& line) const {
    const json& list = member(line, "messages", "");
    if (!list.is_array() || list.empty()) fail("has no list of messages in 'messages'");
    std::vector<ChatMessage> all;
    all.reserve(list.size());
    for (const json& each : list) {
      const std::string in = "messages[" + std::to_string(all.size()) + "].";
      if (!each.is_object()) fail("lacks '" + in + "role'");
      const std::string& role = text(each, "role", in);
      if (role != "system" && role != "user" && role != "assistant") {
        fail("has an unknown role in '" + in +
             "role'; system, user and assistant are supported");
      }
      all.push_back({role, text(each, "content", in)});
    }
    return all;
  }

  [[noreturn]] void fail(const std::string& what, size_t within = 0) const {
    fault_(what, within);
    throw std::logic_error("a LineFault returned");
  }

 private:
  const LineFault& fault_;
};

// `text`, of which the bytes from `counted` on count, between the tokens around a text.
TuningExample between_ends(const std::string& text, size_t counted,
                           const ModelTokenizer& model) {
  const RenderedChat whole{text, {{counted, text.size()}}, {{0, text.size()}}};
  EncodedChat encoded = encode_chat(model.tokenizer, whole);
  TuningExample example{std::move(encoded.ids), std::move(encoded.is_assistant)};
  if (model.begin_of_text) {
    example.ids.insert(example.ids.begin(), *model.begin_of_text);
    example.counts.insert(example.counts.begin(), false);
  }
  if (model.end_of_text) {
    example.ids.push_back(*model.end_of_text);
    example.counts.push_back(true);
  }
  return example;
}

}  // namespace

Form form_of_line(std::string_view line, const LineFault& fail) {
  const LineReader reader(fail);
  const json parsed = reader.parse(line);
  if (parsed.contains("messages")) return Form::kMessages;
  if (parsed.contains("prompt") && parsed.contains("completion")) return Form::kCompletion;
  if (parsed.contains("text")) return Form::kText;
  reader.fail("has neither 'messages' nor 'prompt' and 'completion' nor 'text'");
}

TuningExample example_of_line(std::string_view line, Form form, const ModelTokenizer& model,
                              const LineFault& fail) {
  const LineReader reader(fail);
  const json parsed = reader.parse(line);
  switch (form) {
    case Form::kMessages: {
      if (!model.chat) {
        reader.fail("has messages, but there is no chat template for them" +
                    (model.chat_fault.empty() ? std::string() : ": " + model.chat_fault));
      }
      try {
        EncodedChat chat =
            encode_chat(model.tokenizer, model.chat->render(reader.messages(parsed)));
        return {std::move(chat.ids), std::move(chat.is_assistant)};
      } catch (const UsageError& error) {  // an order of roles
        reader.fail(std::string("is no chat of this template: ") + error.what());
      }
    }
    case Form::kCompletion: {
      const std::string& prompt = reader.text(parsed, "prompt");
      return between_ends(prompt + reader.some_text(parsed, "completion"), prompt.size(),
                          model);
    }
    case Form::kText: return between_ends(reader.some_text(parsed, "text"), 0, model);
    case Form::kPlainText: break;
  }
  throw std::logic_error("plain text has no lines");
}

}  // namespace tidemark
