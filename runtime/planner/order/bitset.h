// A set of operators, one bit each.
//
// Threads: a value.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tidemark::planner {

class Bitset {
 public:
  explicit Bitset(size_t size) : size_(size), words_((size + 63) / 64) {}
  void set(size_t i) { words_[i / 64] |= uint64_t{1} << (i % 64); }
  bool has(size_t i) const { return (words_[i / 64] >> (i % 64) & 1) != 0; }
  void clear() { words_.assign(words_.size(), 0); }
  void fill() {
    for (size_t i = 0; i < size_; ++i) set(i);
  }
  void add(const Bitset& other) {
    for (size_t w = 0; w < words_.size(); ++w) words_[w] |= other.words_[w];
  }
  void keep(const Bitset& other) {
    for (size_t w = 0; w < words_.size(); ++w) words_[w] &= other.words_[w];
  }
  template <class Visit>
  void for_each(Visit visit) const {
    for (size_t w = 0; w < words_.size(); ++w) {
      for (uint64_t word = words_[w]; word != 0; word &= word - 1) {
        visit(w * 64 + static_cast<size_t>(std::countr_zero(word)));
      }
    }
  }

 private:
  size_t size_;
  std::vector<uint64_t> words_;
};

}  // namespace tidemark::planner
