#include "models/text/tokenizer/piece_table.h"

#include <algorithm>
#include <utility>

namespace tidemark::tokenizers {

bool PieceTable::add(std::string piece, int32_t id) {
  if (pieces_.contains(id)) return false;
  const auto [entry, is_new] = ids_.emplace(std::move(piece), id);
  if (!is_new) return false;
  pieces_.emplace(id, &entry->first);
  size_ = std::max(size_, int64_t{id} + 1);
  longest_ = std::max(longest_, entry->first.size());
  characters_ += entry->first.size();
  return true;
}

std::optional<int32_t> PieceTable::find(std::string_view piece) const {
  const auto found = ids_.find(piece);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

Bytes PieceTable::bytes() const {
  // Nodes of both tables, a string's own allocation, and rounding in the heap.
  constexpr size_t kPerPiece = 144, kPerBucket = sizeof(void*);
  return Bytes(
      static_cast<int64_t>(ids_.size() * kPerPiece + characters_ +
                           (ids_.bucket_count() + pieces_.bucket_count()) * kPerBucket));
}

const std::string* PieceTable::piece(int32_t id) const {
  const auto found = pieces_.find(id);
  return found == pieces_.end() ? nullptr : found->second;
}

}  // namespace tidemark::tokenizers
