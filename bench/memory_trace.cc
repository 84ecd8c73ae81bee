#include "bench/memory_trace.h"

#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <string_view>

#include "runtime/core/errors.h"
#include "runtime/core/input_file.h"

namespace tidemark {
namespace {

constexpr std::string_view kFirstLine = "tidemark-trace 1";
constexpr std::string_view kLetters = "pgobadw";
static_assert(kLetters.size() == kCategoryCount);
// Far above any recorded step. A damaged file is not unpacked beyond this size.
constexpr int64_t kLargestFile = int64_t{256} << 20;
// Bounds sizes so that their sums cannot overflow.
constexpr int64_t kLargestBlock = int64_t{1} << 50;

// Parses all of `text`, which must consist of decimal digits.
std::optional<int64_t> number(std::string_view text, int64_t largest) {
  int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value < 0 || value > largest) return std::nullopt;
  return value;
}

class Parser {
 public:
  Parser(const std::string& path, std::string_view text) : path_(path), text_(text) {}

  MemoryTrace parse() {
    if (next_line() != kFirstLine)
      fail("not a memory trace: no '" + std::string(kFirstLine) + "'");
    while (!ended_) event(next_line());
    if (at_ != text_.size()) {
      line_ = at_;
      fail("there is more after the 'end' line");
    }
    return std::move(trace_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(path_, static_cast<int64_t>(line_), what);
  }

  std::string_view next_line() {
    line_ = at_;
    const size_t end = text_.find('\n', at_);
    if (end == std::string_view::npos) fail("truncated: a line or the 'end' line is missing");
    at_ = end + 1;
    return text_.substr(line_, end - line_);
  }

  void event(std::string_view line) {
    if (line.starts_with("+ ")) {
      allocate(line.substr(2));
    } else if (line.starts_with("- ")) {
      free(line.substr(2));
    } else if (line.starts_with("@ ")) {
      note(line.substr(2));
    } else if (line.starts_with("end ")) {
      const auto events = number(line.substr(4), kLargestFile);
      if (events != static_cast<int64_t>(trace_.events.size())) fail("some events are missing");
      ended_ = true;
    } else {
      fail("unknown line");
    }
  }

  void allocate(std::string_view words) {
    const size_t space = words.find(' ');
    if (space == std::string_view::npos || words.size() != space + 2)
      fail("not '+ SIZE CATEGORY'");
    const auto size = number(words.substr(0, space), kLargestBlock);
    const size_t letter = kLetters.find(words[space + 1]);
    if (!size || letter == std::string_view::npos) fail("not '+ SIZE CATEGORY'");
    live_.push_back(trace_.blocks++);
    trace_.events.push_back(
        {TraceEvent::kAllocate, static_cast<Category>(letter), live_.back(), Bytes(*size)});
  }

  void free(std::string_view word) {
    const auto age = number(word, static_cast<int64_t>(live_.size()) - 1);
    if (!age) fail("frees a block that is not live");
    const auto block = live_.end() - 1 - *age;
    trace_.events.push_back({.kind = TraceEvent::kFree, .block = *block});
    live_.erase(block);
  }

  void note(std::string_view words) {
    const size_t space = words.find(' ');
    if (space == std::string_view::npos) fail("not '@ NAME VALUE'");
    trace_.about[std::string(words.substr(0, space))] = words.substr(space + 1);
  }

  const std::string& path_;
  std::string_view text_;
  size_t line_ = 0;  // where the current line begins
  size_t at_ = 0;
  bool ended_ = false;
  std::vector<int64_t> live_;  // blocks, ascending
  MemoryTrace trace_;
};

std::string to_text(const MemoryTrace& trace) {
  std::string text(kFirstLine);
  for (const auto& [name, value] : trace.about) text += "\n@ " + name + " " + value;
  std::vector<int64_t> live;  // blocks, ascending
  for (const TraceEvent& event : trace.events) {
    if (event.kind == TraceEvent::kAllocate) {
      live.push_back(event.block);
      text += "\n+ " + std::to_string(event.size.count()) + " ";
      text += kLetters[static_cast<size_t>(event.category)];
    } else {
      const auto block = std::lower_bound(live.begin(), live.end(), event.block);
      text += "\n- " + std::to_string(live.end() - 1 - block);
      live.erase(block);
    }
  }
  return text + "\nend " + std::to_string(trace.events.size()) + "\n";
}

}  // namespace

Bytes MemoryTrace::max_live() const {
  std::vector<Bytes> sizes;
  Bytes live{0}, most{0};
  for (const TraceEvent& event : events) {
    if (event.kind == TraceEvent::kAllocate) {
      sizes.push_back(std::max(align_up(event.size), kAlignment));
      live += sizes.back();
      most = std::max(most, live);
    } else {
      live -= sizes[static_cast<size_t>(event.block)];
    }
  }
  return most;
}

MemoryTrace read_trace(const std::string& path) {
  const std::vector<uint8_t> bytes = read_whole_file(path, kLargestFile).bytes;
  return Parser(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}).parse();
}

void write_trace(const MemoryTrace& trace, const std::string& path) {
  const std::string text = to_text(trace);
  const char* const mode = path.ends_with(".gz") ? "wb9" : "wbT";  // T: uncompressed
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), mode), gzclose);
  if (!file) throw DataError(path, "cannot be written");
  const int written = gzwrite(file.get(), text.data(), static_cast<unsigned>(text.size()));
  if (written != static_cast<int>(text.size()) || gzflush(file.get(), Z_FINISH) != Z_OK) {
    throw DataError(path, "cannot be written");
  }
}

}  // namespace tidemark
