// JSON parsing with positions: nlohmann's parser over an iterator that records how far it has
// read, so that every error can name its place.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/errors.h"

namespace tidemark {

class LocatedIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  // `*reached` is kept at the offset after the last character read.
  LocatedIterator(const char* at, const char* begin, int64_t* reached)
      : at_(at), begin_(begin), reached_(reached) {}
  reference operator*() const { return *at_; }
  LocatedIterator& operator++() {
    ++at_;
    *reached_ = at_ - begin_;
    return *this;
  }
  LocatedIterator operator++(int) {
    LocatedIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const LocatedIterator& other) const { return at_ == other.at_; }
  bool operator!=(const LocatedIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  const char* begin_;
  int64_t* reached_;
};

struct LocatedRange {
  LocatedIterator begin, end;
  LocatedRange(std::string_view text, int64_t* reached)
      : begin(text.data(), text.data(), reached),
        end(text.data() + text.size(), text.data(), reached) {}
};

// What nlohmann's parser says of a fault, without its own error code, and cut where it quotes a
// long token of the file.
std::string describe_json_fault(const std::exception& error);

inline constexpr int kMaxJsonDepth = 16;  // no format of this project needs more

// With kAny, of members with the same key the last counts; kUnique makes them an error.
enum class JsonKeys { kAny, kUnique };

// Parses `text` from `file`, with Json one of nlohmann's types. Throws DataError, with the
// place if it is known, if the text is not JSON or is nested more deeply than `max_depth`.
template <class Json>
Json parse_located(const std::string& file, std::string_view text,
                   int max_depth = kMaxJsonDepth, JsonKeys keys = JsonKeys::kAny) {
  int64_t reached = 0;
  const LocatedRange range(text, &reached);
  std::vector<std::set<std::string>> seen;  // the keys of each object that has not ended
  const auto visit = [&](int depth, typename Json::parse_event_t event, Json& value) {
    if (depth > max_depth) {
      throw DataError(file, reached, "nested more than " + std::to_string(max_depth) + " deep");
    }
    if (keys == JsonKeys::kAny) return true;
    if (event == Json::parse_event_t::object_start) seen.emplace_back();
    if (event == Json::parse_event_t::object_end) seen.pop_back();
    if (event == Json::parse_event_t::key) {
      const auto key = value.template get<std::string>();
      if (!seen.back().insert(key).second) {
        throw DataError(file, reached, "'" + key.substr(0, 200) + "' appears twice");
      }
    }
    return true;
  };
  try {
    return Json::parse(range.begin, range.end, visit);
  } catch (const typename Json::parse_error& error) {
    // nlohmann counts bytes from 1.
    throw DataError(file, std::max<int64_t>(0, static_cast<int64_t>(error.byte) - 1),
                    "not JSON: " + describe_json_fault(error));
  } catch (const typename Json::out_of_range& error) {  // a number too large for a double
    throw DataError(file, "not JSON: " + describe_json_fault(error));
  }
}

}  // namespace tidemark
