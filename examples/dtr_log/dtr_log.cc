#include "examples/dtr_log/dtr_log.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "runtime/core/errors.h"
#include "runtime/core/input_file.h"
#include "runtime/core/located_json.h"

namespace tidemark {
namespace {

using Json = nlohmann::json;
using Kind = DtrLog::Step::Kind;

constexpr int64_t kLargestFile = int64_t{1} << 30;  // unpacked

// Arguments of one call; no real program has more.
constexpr size_t kMaxArguments = 1 << 16;

class Parser {
 public:
  Parser(const std::string& name, std::string_view text) : name_(name), text_(text) {}

  DtrLog parse() {
    using Read = void (Parser::*)();
    static const std::unordered_map<std::string, Read> kInstructions{
        {"CONSTANT", &Parser::constant},   {"CALL", &Parser::call},
        {"MUTATE", &Parser::mutate},       {"COPY", &Parser::copy},
        {"COPY_FROM", &Parser::copy_from}, {"RELEASE", &Parser::release},
        {"MEMORY", &Parser::stray},        {"ALIAS", &Parser::stray},
        {"ANNOTATE", &Parser::pass},       {"PIN", &Parser::pass}};
    while (next()) {
      const std::string kind = text("INSTRUCTION");
      const auto found = kInstructions.find(kind);
      if (found == kInstructions.end()) fail("unknown instruction '" + kind + "'");
      (this->*found->second)();
    }
    log_.lines = line_;
    for (uint32_t i = 0; i < names_in_use_.size(); ++i) {
      if (names_in_use_[i] > 0) log_.live.push_back(i);
    }
    return std::move(log_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(name_, static_cast<int64_t>(begin_),
                    "line " + std::to_string(line_) + ": " + what);
  }

  // Goes to the next line that is not empty; false at the end.
  bool next() {
    while (at_ < text_.size()) {
      begin_ = at_;
      const size_t end = std::min(text_.find('\n', at_), text_.size());
      at_ = end + 1;
      ++line_;
      const std::string_view line = text_.substr(begin_, end - begin_);
      if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
      try {
        json_ = Json::parse(line);
      } catch (const Json::exception& error) {
        fail("not JSON: " + describe_json_fault(error));
      }
      if (!json_.is_object()) fail("not a JSON object");
      return true;
    }
    begin_ = text_.size();
    return false;
  }
  // Requires the next line to be `kind` of `name`.
  void expect(const std::string& kind, const std::string& name) {
    const int64_t of = line_;
    if (!next() || text("INSTRUCTION") != kind || text("NAME") != name) {
      fail("expected " + kind + " of '" + name + "', which line " + std::to_string(of) +
           " requires");
    }
  }

  const Json& get(const char* key) const {
    const auto found = json_.find(key);
    if (found == json_.end()) fail("\"" + std::string(key) + "\" is missing");
    return *found;
  }
  std::string text(const char* key) const { return text_of(get(key), key); }
  std::string text_of(const Json& value, const char* key) const {
    if (!value.is_string()) fail("\"" + std::string(key) + "\" is not a string");
    return value.get<std::string>();
  }
  std::vector<std::string> texts(const char* key) const {
    const Json& list = get(key);
    if (!list.is_array()) fail("\"" + std::string(key) + "\" is not a list");
    if (list.size() > kMaxArguments) fail("\"" + std::string(key) + "\" is too long");
    std::vector<std::string> found;
    found.reserve(list.size());
    for (const Json& value : list) found.push_back(text_of(value, key));
    return found;
  }
  // Reads a number given as digits in a string or as a number.
  int64_t number_of(const Json& value, const char* key, int64_t least, int64_t most) const {
    int64_t number = 0;
    bool valid = value.is_number_integer();
    if (valid) {
      number = value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{1} << 62
                   ? int64_t{1} << 62
                   : value.get<int64_t>();
    } else if (value.is_string()) {
      const auto& digits = value.get_ref<const std::string&>();
      const char* end = digits.data() + digits.size();
      const auto [rest, error] = std::from_chars(digits.data(), end, number);
      valid = error == std::errc() && rest == end;
    }
    if (!valid) fail("\"" + std::string(key) + "\" is not a whole number");
    if (number < least || number > most) {
      fail("\"" + std::string(key) + "\" is " + std::to_string(number) +
           ", which is not between " + std::to_string(least) + " and " + std::to_string(most));
    }
    return number;
  }
  int64_t number(const char* key, int64_t least, int64_t most) const {
    return number_of(get(key), key, least, most);
  }
  Bytes memory() const { return Bytes(number("MEMORY", 0, kLargestDtrStorage.count())); }
  Nanos time() {
    const Nanos time(number("TIME", 0, kLongestDtrLog.count()));
    log_.time += time;
    if (log_.time > kLongestDtrLog) fail("the log takes longer than a million seconds");
    return time;
  }

  uint32_t look_up(const std::string& name) const {
    const auto found = names_.find(name);
    if (found == names_.end()) fail("'" + name + "' is not defined");
    return found->second;
  }
  uint32_t new_storage(Bytes bytes, bool constant = false) {
    live_ += bytes;
    if (live_ > 32 * kLargestDtrStorage) fail("more bytes are live than any machine has");
    log_.storages.push_back({bytes, constant});
    names_in_use_.push_back(0);
    return static_cast<uint32_t>(log_.storages.size() - 1);
  }
  void bind(const std::string& name, uint32_t storage) {
    if (!names_.emplace(name, storage).second) fail("'" + name + "' is already defined");
    ++names_in_use_[storage];
  }
  void unbind(uint32_t storage) {
    if (--names_in_use_[storage] > 0) return;
    live_ -= log_.storages[storage].bytes;
    log_.steps.push_back({.kind = Kind::kFree, .line = line_, .inputs = {storage}});
  }
  void rebind(const std::string& name, uint32_t storage) {
    uint32_t& bound = names_.at(name);
    ++names_in_use_[storage];
    unbind(std::exchange(bound, storage));
  }

  void pass() {}
  void stray() {
    fail(text("INSTRUCTION") + " of '" + text("NAME") +
         "' without the instruction that it belongs to before it");
  }

  void constant() {
    const std::string name = text("NAME");
    const int64_t line = line_;
    expect("MEMORY", name);
    const uint32_t storage = new_storage(memory(), /*constant=*/true);
    log_.steps.push_back({.kind = Kind::kConstant, .line = line, .outputs = {storage}});
    bind(name, storage);
  }

  DtrLog::Step begin_call(const std::vector<std::string>& arguments) {
    DtrLog::Step step{.line = line_, .name = text("NAME"), .time = time()};
    std::unordered_set<uint32_t> seen;
    for (const std::string& argument : arguments) {
      const uint32_t storage = look_up(argument);
      if (seen.insert(storage).second) step.inputs.push_back(storage);
    }
    ++log_.calls;
    return step;
  }

  void call() {
    const std::vector<std::string> arguments = texts("ARGS"), results = texts("RESULT");
    DtrLog::Step step = begin_call(arguments);
    std::vector<std::pair<std::string, uint32_t>> made;
    made.reserve(results.size());
    for (const std::string& result : results) {
      expect("MEMORY", result);
      const Bytes bytes = memory();
      expect("ALIAS", result);
      const int64_t alias = number("ALIAS", -1, static_cast<int64_t>(arguments.size()) - 1);
      if (alias >= 0) {
        made.emplace_back(result, look_up(arguments[static_cast<size_t>(alias)]));
      } else {
        step.outputs.push_back(new_storage(bytes));
        made.emplace_back(result, step.outputs.back());
      }
    }
    log_.steps.push_back(std::move(step));
    for (const auto& [name, storage] : made) bind(name, storage);
  }

  void mutate() {
    const std::vector<std::string> arguments = texts("ARGS");
    const Json& mutated = get("MUTATE");
    if (!mutated.is_array()) fail("\"MUTATE\" is not a list");
    if (mutated.size() > arguments.size()) fail("\"MUTATE\" is longer than \"ARGS\"");
    DtrLog::Step step = begin_call(arguments);
    std::vector<std::pair<std::string, uint32_t>> changes;
    for (const Json& value : mutated) {
      const std::string& name = arguments[static_cast<size_t>(
          number_of(value, "MUTATE", 0, static_cast<int64_t>(arguments.size()) - 1))];
      step.outputs.push_back(new_storage(log_.storages[look_up(name)].bytes));
      changes.emplace_back(name, step.outputs.back());
    }
    log_.steps.push_back(std::move(step));
    for (const auto& [name, storage] : changes) rebind(name, storage);
  }

  void copy() {
    const std::string to = text("DST");
    bind(to, look_up(text("SRC")));
  }
  void copy_from() {
    const std::string to = text("DST");
    look_up(to);
    rebind(to, look_up(text("SRC")));
  }
  void release() {
    const auto found = names_.find(text("NAME"));
    if (found == names_.end()) return;
    const uint32_t storage = found->second;
    names_.erase(found);
    unbind(storage);
  }

  const std::string& name_;
  const std::string_view text_;
  size_t at_ = 0, begin_ = 0;
  int64_t line_ = 0;
  Json json_;
  DtrLog log_;
  std::unordered_map<std::string, uint32_t> names_;
  std::vector<int64_t> names_in_use_;  // per storage
  Bytes live_{0};
};

}  // namespace

DtrLog parse_dtr_log(const std::string& name, std::string_view text) {
  return Parser(name, text).parse();
}

DtrLog read_dtr_log(const std::string& path) {
  const FileContent content = read_whole_file(path, kLargestFile);
  return parse_dtr_log(
      path, {reinterpret_cast<const char*>(content.bytes.data()), content.bytes.size()});
}

}  // namespace tidemark
