#include <charconv>
#include <cmath>
#include <fstream>
#include <sstream>

#include "runtime/core/errors.h"
#include "runtime/planner/papers/solver/adapters.h"

namespace tidemark::planner {

bool Lines::next() {
  if (next_ >= text_.size()) return false;
  at_ = next_;
  const size_t end = text_.find('\n', at_);
  line_ = text_.substr(at_, end == std::string::npos ? end : end - at_);
  next_ = end == std::string::npos ? text_.size() : end + 1;
  words_.clear();
  std::istringstream words(line_);
  for (std::string word; words >> word;) words_.push_back(word);
  return true;
}

void Lines::fail(const std::string& what) const {
  throw DataError(name_, static_cast<int64_t>(at_), what);
}

bool is_number(const std::string& word, double& value) {
  const char* const end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, value);
  return error == std::errc() && stop == end;
}

double Lines::number(const std::string& word) const {
  double value = 0;
  if (!is_number(word, value)) fail("'" + word + "' is not a number");
  return value;
}

size_t Lines::index(const std::string& word, char prefix, size_t count) const {
  size_t value = 0;
  const char* const end = word.data() + word.size();
  if (!word.empty() && word[0] == prefix) {
    const auto [stop, error] = std::from_chars(word.data() + 1, end, value);
    if (error == std::errc() && stop == end && value < count) return value;
  }
  fail("there is no '" + word + "' in the program");
}

double last_number_after(const std::string& log, const std::string& label, double otherwise) {
  const size_t at = log.rfind(label);
  if (at == std::string::npos) return otherwise;
  std::istringstream rest(log.substr(at + label.size(), 100));
  std::string word;
  rest >> word;
  double value = 0;
  return is_number(word, value) ? value : otherwise;
}

void add_improvement(const Improvement& improvement, std::vector<Improvement>& all) {
  if (!std::isfinite(improvement.seconds) || !std::isfinite(improvement.objective)) return;
  if (improvement.seconds < (all.empty() ? 0 : all.back().seconds)) return;
  if (!all.empty() && improvement.objective >= all.back().objective) return;
  all.push_back(improvement);
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw DataError(path, "cannot be written");
}

}  // namespace tidemark::planner
