#include "models/text/squad.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include <nlohmann/json.hpp>

#include "models/text/unicode.h"
#include "runtime/core/errors.h"
#include "runtime/core/input_file.h"
#include "runtime/core/located_json.h"

namespace tidemark {
namespace {

using nlohmann::json;

// {"data": [{"paragraphs": [{"context": "...", "qas": [{"id": "...", "question": "...",
//   "answers": [{"text": "...", "answer_start": 0}]}]}]}]}
// Objects lie at even depths. Arrays with these names lie at odd depths.
constexpr std::array<std::string_view, 9> kNames{"", "data",    "", "paragraphs", "", "qas",
                                                 "", "answers", ""};
constexpr size_t kParagraph = 4, kQuestion = 6, kDeepest = 8;
constexpr size_t kMaxDepth = 32;
constexpr size_t kLongestMessage = 200;

// Byte offsets of each code point of a text and of its end.
std::vector<size_t> code_point_offsets(std::string_view text) {
  std::vector<size_t> offsets;
  for (size_t at = 0; at < text.size(); next_code_point(text, at)) offsets.push_back(at);
  offsets.push_back(text.size());
  return offsets;
}

// Takes questions and paragraphs as the parser completes them and makes the parser drop
// everything else, so that at most one paragraph is held as JSON.
class Reader {
 public:
  Reader(const std::string& name, std::string_view text) : name_(name), text_(text) {}

  std::vector<SquadExample> run() {
    const LocatedRange range(text_, &reached_);
    const auto visit = [this](int depth, json::parse_event_t event, json& parsed) {
      return take(static_cast<size_t>(depth), event, parsed);
    };
    try {
      [[maybe_unused]] const json rest = json::parse(range.begin, range.end, visit);
    } catch (const json::exception& error) {
      fail(reached_, "not JSON: " + describe_json_fault(error));
    }
    if (!saw_data_) fail(0, "\"data\" is missing; this is not a SQuAD file");
    return std::move(examples_);
  }

 private:
  [[noreturn]] void fail(int64_t offset, const std::string& what) const {
    throw DataError(name_, offset, what);
  }

  // Whether the value at `depth` is part of the expected form.
  bool in_form(size_t depth) const {
    if (depth > kDeepest) return false;
    for (size_t level = 1; level <= depth; level += 2) {
      if (keys_[level] != kNames[level]) return false;
    }
    return true;
  }

  bool take(size_t depth, json::parse_event_t event, const json& parsed) {
    if (depth > kMaxDepth) {
      fail(reached_, "nested more than " + std::to_string(kMaxDepth) + " deep");
    }
    switch (event) {
      case json::parse_event_t::key:
        if (depth < keys_.size()) keys_[depth] = parsed.get_ref<const std::string&>();
        return true;
      case json::parse_event_t::object_start:
      case json::parse_event_t::array_start: {
        if (!in_form(depth)) return false;
        const bool is_object = event == json::parse_event_t::object_start;
        check_kind(depth, is_object, !is_object);
        starts_[depth] = reached_ - 1;
        if (depth == 1) saw_data_ = true;
        return true;
      }
      case json::parse_event_t::value:
        if (in_form(depth)) check_kind(depth, false, false);
        return wanted(depth);
      case json::parse_event_t::object_end:
        if (!in_form(depth) || (depth != kQuestion && depth != kParagraph)) return true;
        depth == kQuestion ? end_question(parsed) : end_paragraph(parsed);
        return false;
      case json::parse_event_t::array_end: return true;
    }
    return true;
  }

  void check_kind(size_t depth, bool is_object, bool is_array) const {
    if (depth % 2 == 0 ? is_object : is_array) return;
    const std::string where =
        depth == 0 ? "the file" : '"' + std::string(kNames[depth - 1 + depth % 2]) + '"';
    fail(reached_, depth % 2 == 0
                       ? (depth == 0 ? where + " is not a JSON object"
                                     : "an element of " + where + " is not an object")
                       : where + " is not an array");
  }

  // Whether to keep a value: a member of a paragraph, a question or an answer.
  bool wanted(size_t depth) const {
    if (depth % 2 == 0 || depth > kDeepest + 1 || !in_form(depth - 1)) return false;
    const std::string& key = keys_[depth];
    if (depth == kParagraph + 1) return key == "context";
    if (depth == kQuestion + 1) return key == "id" || key == "question";
    return depth == kDeepest + 1 && (key == "text" || key == "answer_start");
  }

  const std::string& string_in(const json& object, const char* key, size_t depth) const {
    const auto member = object.find(key);
    if (member == object.end() || !member->is_string()) {
      fail(starts_[depth], std::string("no string \"") + key + '"');
    }
    return member->get_ref<const std::string&>();
  }

  void end_question(const json& question) {
    SquadExample example;
    example.id = string_in(question, "id", kQuestion);
    example.question = string_in(question, "question", kQuestion);
    const auto answers = question.find("answers");
    if (answers == question.end() || answers->empty()) {
      fail(starts_[kQuestion], "question " + example.id.substr(0, kLongestMessage) +
                                   " has no answer; only SQuAD version 1.1 is supported");
    }
    if (!ids_.insert(example.id).second) {
      fail(starts_[kQuestion],
           "question " + example.id.substr(0, kLongestMessage) + " appears twice");
    }
    std::vector<uint64_t> at;
    for (const json& answer : *answers) {
      const auto start = answer.find("answer_start");
      if (start == answer.end() || !start->is_number_unsigned()) {
        fail(starts_[kQuestion], "\"answer_start\" must be a number of at least 0");
      }
      at.push_back(start->get<uint64_t>());
      example.answers.push_back({string_in(answer, "text", kQuestion), {}});
    }
    pending_.push_back({std::move(example), std::move(at), starts_[kQuestion]});
  }

  // The context may come after its questions.
  void end_paragraph(const json& paragraph) {
    auto context =
        std::make_shared<const std::string>(string_in(paragraph, "context", kParagraph));
    const std::vector<size_t> offsets = code_point_offsets(*context);
    for (Pending& pending : pending_) {
      pending.example.context = context;
      for (size_t i = 0; i < pending.at.size(); ++i) {
        SquadAnswer& answer = pending.example.answers[i];
        const uint64_t first = pending.at[i];
        const uint64_t length = count_code_points(answer.text);
        const uint64_t characters = offsets.size() - 1;
        if (first > characters || length > characters - first) {
          fail(pending.offset, "an answer of " + std::to_string(length) +
                                   " characters at character " + std::to_string(first) +
                                   " exceeds the context of " + std::to_string(characters));
        }
        const ByteRange place{offsets[first], offsets[first + length]};
        if (context->compare(place.begin, place.end - place.begin, answer.text) == 0) {
          answer.place = place;
        }
      }
      examples_.push_back(std::move(pending.example));
    }
    pending_.clear();
  }

  struct Pending {
    SquadExample example;
    std::vector<uint64_t> at;  // per answer, in code points
    int64_t offset;            // the question's place in the file
  };

  const std::string& name_;
  std::string_view text_;
  int64_t reached_ = 0;
  std::array<std::string, kDeepest + 2> keys_;
  std::array<int64_t, kDeepest + 1> starts_{};
  bool saw_data_ = false;
  std::unordered_set<std::string> ids_;
  std::vector<Pending> pending_;
  std::vector<SquadExample> examples_;
};

}  // namespace

std::vector<SquadExample> parse_squad(const std::string& name, std::string_view text) {
  return Reader(name, text).run();
}

std::vector<SquadExample> read_squad(const std::string& path, int64_t limit) {
  const FileContent content = read_whole_file(path, limit);
  return parse_squad(
      path, {reinterpret_cast<const char*>(content.bytes.data()), content.bytes.size()});
}

}  // namespace tidemark
