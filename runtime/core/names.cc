#include "runtime/core/names.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

namespace tidemark {
namespace {

struct Table {
  std::mutex mutex;
  std::deque<std::string> texts;
  std::unordered_set<std::string_view> known;  // views of `texts`
  size_t bytes = 0;
};

// Never destroyed: names are read until the process ends.
Table& table() {
  static Table* const names = new Table;
  return *names;
}

// Per-thread cache of joined names, keyed by the addresses of their parts. A step joins
// thousands of names, and each join would take longer than issuing an operator should.
class Joined {
 public:
  template <class Join>
  const char* find(const char* text, uintptr_t suffix, const Join& join) {
    if (places_.empty()) places_.resize(kPlaces);
    const auto key = reinterpret_cast<uintptr_t>(text) * 31 + suffix;
    const size_t first = (key * 0x9E3779B97F4A7C15) >> (64 - kBits);
    for (size_t i = first; i < first + kProbes; ++i) {
      Place& place = places_[i % kPlaces];
      if (place.text == text && place.suffix == suffix) return place.joined;
      if (!place.text) return (place = {text, suffix, join()}).joined;
    }
    return (places_[first] = {text, suffix, join()}).joined;
  }

 private:
  static constexpr int kBits = 12;
  static constexpr size_t kProbes = 8;
  static constexpr size_t kPlaces = size_t{1} << kBits;
  struct Place {
    const char* text = nullptr;
    uintptr_t suffix = 0;
    const char* joined = nullptr;
  };
  std::vector<Place> places_;
};

Joined& joined() {
  thread_local Joined latest;
  return latest;
}

// Interns `longer`; returns `text` if the table is full.
const char* intern_or(const char* text, const std::string& longer) {
  const char* const name = intern(longer);
  return *name ? name : text;
}

}  // namespace

const char* intern(std::string_view text) {
  Table& names = table();
  const std::scoped_lock lock(names.mutex);
  if (const auto found = names.known.find(text); found != names.known.end()) {
    return found->data();
  }
  const size_t bytes = text.size() + 1 + sizeof(std::string);
  if (bytes > kMaxNameBytes - names.bytes) return "";
  names.bytes += bytes;
  const std::string& kept = names.texts.emplace_back(text);
  names.known.insert(kept);
  return kept.c_str();
}

const char* call_name(const char* op) {
  const char* const path = current_path();
  if (!*path) return op;
  return joined().find(path, reinterpret_cast<uintptr_t>(op),
                       [&] { return intern_or(op, std::string(path) + ": " + op); });
}

const char* output_name(const char* call, size_t output) {
  if (output == 0) return call;
  return joined().find(call, output, [&] {
    return intern_or(call, std::string(call) + ", output " + std::to_string(output));
  });
}

}  // namespace tidemark
