// An ordered map from offsets to values. Neighbours are found at once; adding, removing and
// finding take two short searches, whatever the size. Entries are stored in chunks, so that a
// walk along addresses reads memory in order, and no entry is allocated separately.
//
//   firsts   0          4096                 20480
//   chunks  | 0 1024 | | 4096 8192 16384 |  | 20480 ... |
//
// Threads: one at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <vector>

#include "runtime/core/units.h"

namespace tidemark {

template <class Value>
class AddressMap {
  static_assert(std::is_trivially_copyable_v<Value>, "entries are moved as bytes");

 public:
  struct Entry {
    Offset offset;
    Value value;
  };

  // The position of an entry; valid until the map changes.
  class Cursor {
   public:
    const Entry& operator*() const { return map_->entry(*this); }
    const Entry* operator->() const { return &map_->entry(*this); }
    Cursor& operator++() {
      if (++index_ == map_->chunks_[chunk_]->count) {
        ++chunk_;
        index_ = 0;
      }
      return *this;
    }
    // REQUIRES: not the first entry.
    Cursor& operator--() {
      if (index_ == 0) index_ = map_->chunks_[--chunk_]->count;
      --index_;
      return *this;
    }
    bool operator==(const Cursor& other) const {
      return chunk_ == other.chunk_ && index_ == other.index_;
    }

   private:
    friend class AddressMap;
    Cursor(const AddressMap* map, size_t chunk, size_t index)
        : map_(map), chunk_(chunk), index_(index) {}
    const AddressMap* map_;
    size_t chunk_;
    size_t index_;
  };

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  Cursor begin() const { return {this, 0, 0}; }
  Cursor end() const { return {this, chunks_.size(), 0}; }
  // REQUIRES: !empty().
  const Entry& front() const { return chunks_.front()->entries.front(); }
  const Entry& back() const { return chunks_.back()->entries[chunks_.back()->count - 1]; }

  // The first entry at or above `offset`.
  Cursor first_from(Offset offset) const {
    if (empty()) return end();
    const size_t chunk = chunk_for(offset);
    const size_t index = index_for(*chunks_[chunk], offset);
    return index < chunks_[chunk]->count ? Cursor(this, chunk, index)
                                         : Cursor(this, chunk + 1, 0);
  }
  // end() if no entry is at `offset`.
  Cursor find(Offset offset) const {
    const Cursor place = first_from(offset);
    return place == end() || place->offset != offset ? end() : place;
  }
  // The last entry at or below `offset`; end() if none.
  Cursor last_up_to(Offset offset) const {
    if (empty() || front().offset > offset) return end();
    Cursor place = first_from(offset);
    if (place == end() || place->offset != offset) --place;
    return place;
  }

  // REQUIRES: no entry is at `offset`.
  void insert(Offset offset, const Value& value) {
    if (empty()) add_chunk(0, offset);
    size_t c = chunk_for(offset);
    if (chunks_[c]->count == kChunk) {
      split(c);
      c = chunk_for(offset);
    }
    Chunk& chunk = *chunks_[c];
    const size_t index = index_for(chunk, offset);
    Entry* const at = chunk.entries.data() + index;
    std::copy_backward(at, chunk.entries.data() + chunk.count,
                       chunk.entries.data() + chunk.count + 1);
    *at = {offset, value};
    ++chunk.count;
    ++size_;
    if (index == 0) firsts_[c] = offset;
  }
  void erase(const Cursor& place) {
    Chunk& chunk = *chunks_[place.chunk_];
    Entry* const at = chunk.entries.data() + place.index_;
    std::copy(at + 1, chunk.entries.data() + chunk.count, at);
    --chunk.count;
    --size_;
    if (chunk.count == 0) {
      remove_chunk(place.chunk_);
      return;
    }
    if (place.index_ == 0) firsts_[place.chunk_] = chunk.entries.front().offset;
    if (chunk.count < kFew && place.chunk_ + 1 < chunks_.size()) join(place.chunk_);
  }
  // Moves the entry to `offset`. REQUIRES: `offset` lies between its neighbours' offsets.
  void move(const Cursor& place, Offset offset) {
    chunks_[place.chunk_]->entries[place.index_].offset = offset;
    if (place.index_ == 0) firsts_[place.chunk_] = offset;
  }
  Value& value(const Cursor& place) {
    return chunks_[place.chunk_]->entries[place.index_].value;
  }

 private:
  static constexpr size_t kChunk = 64;
  static constexpr size_t kFew = kChunk / 4;  // smaller ones join the next, if they fit
  struct Chunk {
    size_t count = 0;
    std::array<Entry, kChunk> entries;
  };

  const Entry& entry(const Cursor& place) const {
    return chunks_[place.chunk_]->entries[place.index_];
  }
  // The last chunk that begins at or below `offset`, or the first of all.
  size_t chunk_for(Offset offset) const {
    const auto after = std::upper_bound(firsts_.begin(), firsts_.end(), offset);
    return after == firsts_.begin() ? 0 : static_cast<size_t>(after - firsts_.begin()) - 1;
  }
  static size_t index_for(const Chunk& chunk, Offset offset) {
    const Entry* const begin = chunk.entries.data();
    const Entry* const found =
        std::lower_bound(begin, begin + chunk.count, offset,
                         [](const Entry& e, Offset o) { return e.offset < o; });
    return static_cast<size_t>(found - begin);
  }
  void add_chunk(size_t at, Offset first) {
    chunks_.insert(chunks_.begin() + static_cast<ptrdiff_t>(at), std::make_unique<Chunk>());
    firsts_.insert(firsts_.begin() + static_cast<ptrdiff_t>(at), first);
  }
  void remove_chunk(size_t at) {
    chunks_.erase(chunks_.begin() + static_cast<ptrdiff_t>(at));
    firsts_.erase(firsts_.begin() + static_cast<ptrdiff_t>(at));
  }
  void split(size_t at) {
    constexpr size_t kHalf = kChunk / 2;
    add_chunk(at + 1, chunks_[at]->entries[kHalf].offset);
    Chunk& lower = *chunks_[at];
    Chunk& upper = *chunks_[at + 1];
    std::copy(lower.entries.begin() + kHalf, lower.entries.end(), upper.entries.begin());
    lower.count = upper.count = kHalf;
  }
  void join(size_t at) {
    Chunk& lower = *chunks_[at];
    const Chunk& upper = *chunks_[at + 1];
    if (lower.count + upper.count > kChunk / 2) return;
    std::copy(upper.entries.begin(),
              upper.entries.begin() + static_cast<ptrdiff_t>(upper.count),
              lower.entries.begin() + static_cast<ptrdiff_t>(lower.count));
    lower.count += upper.count;
    remove_chunk(at + 1);
  }

  std::vector<std::unique_ptr<Chunk>> chunks_;  // none is empty
  std::vector<Offset> firsts_;                  // per chunk: the offset of its first entry
  size_t size_ = 0;
};

}  // namespace tidemark
