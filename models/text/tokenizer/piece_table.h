// The pieces of a tokenizer and their numbers (ids), which need not be consecutive.
//
// Any thread, once filled.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "runtime/core/units.h"

namespace tidemark::tokenizers {

class PieceTable {
 public:
  PieceTable() = default;
  PieceTable(const PieceTable&) = delete;  // pieces_ points into ids_
  PieceTable& operator=(const PieceTable&) = delete;

  // Returns false, and does nothing, if the piece or the id is present already.
  // REQUIRES: id >= 0.
  bool add(std::string piece, int32_t id);

  std::optional<int32_t> find(std::string_view piece) const;
  // nullptr for an id without a piece.
  const std::string* piece(int32_t id) const;

  // The largest id plus 1.
  int64_t size() const { return size_; }
  // In bytes.
  size_t longest_piece() const { return longest_; }
  // An upper bound on host memory.
  Bytes bytes() const;

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };

  std::unordered_map<std::string, int32_t, Hash, std::equal_to<>> ids_;
  std::unordered_map<int32_t, const std::string*> pieces_;
  int64_t size_ = 0;
  size_t longest_ = 0;
  size_t characters_ = 0;  // bytes of all pieces
};

}  // namespace tidemark::tokenizers
