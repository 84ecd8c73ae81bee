#include "models/text/vocabulary.h"

#include <algorithm>

#include "models/text/unicode.h"
#include "runtime/core/errors.h"
#include "runtime/core/input_file.h"
#include "runtime/core/text_file.h"

namespace tidemark {
namespace {

constexpr int64_t kMaxFile = int64_t{64} << 20;

}  // namespace

Vocabulary::Vocabulary(const std::vector<std::string>& pieces) {
  for (const std::string& piece : pieces) {
    if (piece.empty()) throw UsageError("[vocabulary] a piece is empty");
    if (!add(piece)) throw UsageError("[vocabulary] '" + piece + "' appears twice");
  }
  unknown_ = special(kUnknownPiece);
}

Vocabulary Vocabulary::read(const std::string& path) {
  const FileContent content = read_whole_file(path, kMaxFile);
  return parse(path,
               {reinterpret_cast<const char*>(content.bytes.data()), content.bytes.size()});
}

Vocabulary Vocabulary::parse(const std::string& name, std::string_view text) {
  Vocabulary vocabulary;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    const auto fail = [&](const std::string& what) {
      return DataError(name, static_cast<int64_t>(begin),
                       "line " + std::to_string(vocabulary.size() + 1) + ": " + what);
    };
    if (line.empty()) {
      if (text.find_first_not_of("\r\n", begin) == std::string_view::npos) break;
      throw fail("an empty piece");
    }
    if (!is_utf8(line)) throw fail("not UTF-8");
    if (!vocabulary.add(std::string(line))) {
      throw fail("'" + std::string(line) + "' is also on line " +
                 std::to_string(*vocabulary.find(line) + 1));
    }
    begin = end + 1;
  }
  const std::optional<int32_t> unknown = vocabulary.find(kUnknownPiece);
  if (!unknown) {
    throw DataError(name, static_cast<int64_t>(text.size()),
                    "there is no [UNK] among the " + std::to_string(vocabulary.size()) +
                        " pieces; expected a vocab.txt, with a piece on each line");
  }
  vocabulary.unknown_ = *unknown;
  return vocabulary;
}

void Vocabulary::write(const std::string& path) const {
  std::string text;
  for (const std::string& piece : pieces_) text += piece + '\n';
  write_text_file(path, text);
}

const std::string& Vocabulary::piece(int64_t id) const {
  if (id < 0 || id >= size()) {
    throw UsageError("[vocabulary] there is no piece " + std::to_string(id) + " among " +
                     std::to_string(size()));
  }
  return pieces_[static_cast<size_t>(id)];
}

std::optional<int32_t> Vocabulary::find(std::string_view piece) const {
  const auto found = ids_.find(piece);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

bool Vocabulary::add(std::string piece) {
  if (!ids_.emplace(piece, static_cast<int32_t>(pieces_.size())).second) return false;
  longest_ = std::max(longest_, piece.size());
  pieces_.push_back(std::move(piece));
  return true;
}

int32_t Vocabulary::special(std::string_view piece) const {
  const std::optional<int32_t> id = find(piece);
  if (!id) throw UsageError("[vocabulary] there is no piece " + std::string(piece));
  return *id;
}

}  // namespace tidemark
