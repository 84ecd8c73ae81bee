#include "runtime/planner/io/layout_csv.h"

#include <charconv>
#include <string_view>
#include <unordered_set>

#include "runtime/core/errors.h"

namespace tidemark::planner {
namespace {

constexpr std::string_view kColumns[] = {"id", "lower", "upper", "size"};

class Reader {
 public:
  Reader(const std::string& text, const std::string& name) : text_(text), name_(name) {}

  LayoutInstance read() {
    if (!next_line()) fail("the header id,lower,upper,size is missing");
    const std::vector<std::string_view> header = cells();
    int column[4] = {-1, -1, -1, -1};
    for (size_t c = 0; c < header.size(); ++c) {
      bool known = false;
      for (int k = 0; k < 4; ++k) {
        if (header[c] != kColumns[k]) continue;
        if (column[k] >= 0) fail("column '" + std::string(header[c]) + "' appears twice");
        column[k] = static_cast<int>(c);
        known = true;
      }
      if (!known) fail("unknown column '" + std::string(header[c].substr(0, 40)) + "'");
    }
    for (int k = 0; k < 4; ++k) {
      if (column[k] < 0) fail("column '" + std::string(kColumns[k]) + "' is missing");
    }
    LayoutInstance result;
    std::unordered_set<std::string> ids;
    int64_t sum = 0;
    while (next_line()) {
      if (line_.empty()) continue;
      const std::vector<std::string_view> row = cells();
      if (row.size() != header.size()) {
        fail(std::to_string(row.size()) + " columns instead of " +
             std::to_string(header.size()));
      }
      Buffer buffer;
      buffer.begin = number(row[column[1]], "lower");
      buffer.end = number(row[column[2]], "upper");
      buffer.size = Bytes(number(row[column[3]], "size"));
      if (buffer.size < Bytes(0)) fail("size is negative");
      if (buffer.end < buffer.begin) fail("upper is below lower");
      int64_t lifetime = 0;
      if (__builtin_sub_overflow(buffer.end, buffer.begin, &lifetime)) {
        fail("upper - lower does not fit in 63 bits");
      }
      if (__builtin_add_overflow(sum, buffer.size.count(), &sum)) {
        fail("the sum of the sizes up to here does not fit in 63 bits");
      }
      std::string id(row[column[0]]);
      if (id.empty()) fail("the id is empty");
      if (!ids.insert(id).second) fail("id '" + id.substr(0, 40) + "' appears twice");
      result.ids.push_back(std::move(id));
      result.buffers.push_back(buffer);
    }
    return result;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(name_, static_cast<int64_t>(start_),
                    "line " + std::to_string(number_) + ": " + what);
  }

  bool next_line() {
    if (at_ >= text_.size()) return false;
    start_ = at_;
    size_t end = text_.find('\n', at_);
    if (end == std::string::npos) end = text_.size();
    line_ = std::string_view(text_).substr(at_, end - at_);
    if (!line_.empty() && line_.back() == '\r') line_.remove_suffix(1);
    at_ = end + 1;
    ++number_;
    return true;
  }

  std::vector<std::string_view> cells() const {
    std::vector<std::string_view> result;
    size_t at = 0;
    for (size_t comma = 0; comma != std::string_view::npos; at = comma + 1) {
      comma = line_.find(',', at);
      std::string_view cell =
          line_.substr(at, comma == std::string_view::npos ? comma : comma - at);
      while (!cell.empty() && cell.front() == ' ') cell.remove_prefix(1);
      while (!cell.empty() && cell.back() == ' ') cell.remove_suffix(1);
      result.push_back(cell);
    }
    return result;
  }

  int64_t number(std::string_view cell, const char* column) const {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (error != std::errc() || end != cell.data() + cell.size()) {
      fail(std::string(column) + " is '" + std::string(cell.substr(0, 40)) +
           "', not an integer below 2^63");
    }
    return value;
  }

  const std::string& text_;
  const std::string& name_;
  size_t at_ = 0, start_ = 0;
  int64_t number_ = 0;
  std::string_view line_;
};

}  // namespace

LayoutInstance parse_layout_csv(const std::string& text, const std::string& name) {
  return Reader(text, name).read();
}

std::string format_layout_csv(const LayoutInstance& instance, const Offsets& offsets) {
  std::string text = "id,lower,upper,size,offset\n";
  for (size_t i = 0; i < instance.buffers.size(); ++i) {
    const Buffer& b = instance.buffers[i];
    text += instance.ids[i] + "," + std::to_string(b.begin) + "," + std::to_string(b.end) +
            "," + std::to_string(b.size.count()) + "," + std::to_string(offsets[i].value()) +
            "\n";
  }
  return text;
}

}  // namespace tidemark::planner
