#include "models/text/tokenizer/normalizer.h"

#include <cstdlib>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include <utf8proc.h>

#include "models/text/tokenizer/character_classes.h"
#include "models/text/tokenizer/pattern.h"
#include "models/text/unicode.h"

namespace tidemark::tokenizers {
namespace {

std::string normal_form(const std::string& text, unsigned options) {
  utf8proc_uint8_t* mapped = nullptr;
  const utf8proc_ssize_t size = utf8proc_map(
      reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
      static_cast<utf8proc_ssize_t>(text.size()), &mapped,
      static_cast<utf8proc_option_t>(options | static_cast<unsigned>(UTF8PROC_STABLE)));
  // The text is UTF-8, so only memory can be short.
  if (size < 0) throw std::bad_alloc();
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(mapped, &std::free);
  return {reinterpret_cast<const char*>(mapped), static_cast<size_t>(size)};
}

constexpr unsigned kNfd = UTF8PROC_DECOMPOSE, kNfc = UTF8PROC_COMPOSE,
                   kCompatible = UTF8PROC_COMPAT;

Normalizer normal_form_of(unsigned options) {
  return [options](const std::string& text) { return normal_form(text, options); };
}

// Calls visit(code, into) for each code point, and returns what it appended.
template <class Visit>
std::string rewrite(const std::string& text, const Visit& visit) {
  std::string into;
  into.reserve(text.size());
  for (size_t at = 0; at < text.size();) visit(next_code_point(text, at), into);
  return into;
}

template <class Drop>
std::string without(const std::string& text, const Drop& drop) {
  return rewrite(text, [&](char32_t code, std::string& into) {
    if (!drop(code)) append_utf8(into, code);
  });
}

std::string lower(const std::string& text) {
  return rewrite(text, [](char32_t code, std::string& into) {
    const CodeText codes = lower_case(code);
    for (const char32_t c : codes.view()) append_utf8(into, c);
  });
}

std::string clean_for_bert(const std::string& text) {
  return rewrite(text, [](char32_t code, std::string& into) {
    if (code == 0 || code == kReplacement || is_bert_control(code)) return;
    append_utf8(into, is_space(code) ? U' ' : code);
  });
}

std::string space_ideographs(const std::string& text) {
  return rewrite(text, [](char32_t code, std::string& into) {
    if (is_cjk(code)) into += ' ';
    append_utf8(into, code);
    if (is_cjk(code)) into += ' ';
  });
}

Normalizer parse_bert(const JsonNode& json) {
  const bool clean = json.flag("clean_text", true);
  const bool ideographs = json.flag("handle_chinese_chars", true);
  const bool lowercase = json.flag("lowercase", true);
  const bool strip = json.flag("strip_accents", lowercase);
  return [=](std::string text) {
    if (clean) text = clean_for_bert(text);
    if (ideographs) text = space_ideographs(text);
    if (strip) text = without(normal_form(text, kNfd), is_nonspacing_mark);
    if (lowercase) text = lower(text);
    return text;
  };
}

std::string strip(const std::string& text, bool left, bool right) {
  size_t begin = 0;
  size_t end = 0;  // behind the last character that is no space
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    if (is_space(next_code_point(text, at))) continue;
    if (end == 0) begin = start;
    end = at;
  }
  if (end == 0) begin = text.size();  // spaces alone
  if (!left) begin = 0;
  if (!right) end = text.size();
  return begin < end ? text.substr(begin, end - begin) : std::string();
}

Normalizer parse_step(const JsonNode& json);

Normalizer parse_sequence(const JsonNode& json) {
  std::vector<Normalizer> steps;
  for (const JsonNode& step : json.list("normalizers")) steps.push_back(parse_step(step));
  return [steps](std::string text) {
    for (const Normalizer& step : steps) text = step(std::move(text));
    return text;
  };
}

Normalizer parse_step(const JsonNode& json) {
  const std::string type = json.text("type");
  if (type == "Sequence") return parse_sequence(json);
  if (type == "NFC") return normal_form_of(kNfc);
  if (type == "NFD") return normal_form_of(kNfd);
  if (type == "NFKC") return normal_form_of(kNfc | kCompatible);
  if (type == "NFKD") return normal_form_of(kNfd | kCompatible);
  if (type == "Lowercase") return lower;
  if (type == "BertNormalizer") return parse_bert(json);
  if (type == "StripAccents") {
    return [](const std::string& text) { return without(text, is_mark); };
  }
  if (type == "Prepend") {
    return [prefix = json.text("prepend")](const std::string& text) {
      return text.empty() ? text : prefix + text;
    };
  }
  if (type == "Replace") {
    return [pattern = Pattern(json.at("pattern")), by = json.text("content")](
               const std::string& text) { return pattern.replace_all(text, by); };
  }
  if (type == "Strip") {
    return [left = json.flag("strip_left", true), right = json.flag("strip_right", true)](
               const std::string& text) { return strip(text, left, right); };
  }
  json.fail("has the type " + quote_text(type) + ", which is not supported");
}

}  // namespace

Normalizer compose() { return normal_form_of(kNfc); }

Normalizer mark_spaces(bool prefix) {
  constexpr const char* kMark = "\u2581";
  return [prefix, spaces = Pattern(std::string(" "))](const std::string& text) {
    return (prefix && !text.empty() ? kMark : "") + spaces.replace_all(text, kMark);
  };
}

Normalizer parse_normalizer(const JsonNode& json) {
  Normalizer parsed = parse_step(json);
  check_growth(json, "normalizers");
  return parsed;
}

}  // namespace tidemark::tokenizers
