// A map from names that keeps only recently used entries; otherwise, a program whose shapes
// keep changing would grow the map without bound.
//
// Two generations: an entry found in the old generation moves to the new one. When the new
// generation holds `most` / 2 entries, the old one is dropped and the new one takes its place.
// The `most` / 2 most recent entries are therefore always present.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>
#include <utility>

namespace tidemark {

template <class Value>
class RecentMap {
 public:
  explicit RecentMap(size_t most) : half_(most / 2) {}

  // Null if absent. The pointer stays valid until `most` / 2 other names have been looked up.
  Value* find(const std::string& name) {
    if (const auto found = new_.find(name); found != new_.end()) return &found->second;
    const auto found = old_.find(name);
    if (found == old_.end()) return nullptr;
    auto node = old_.extract(found);
    make_space();
    return &new_.insert(std::move(node)).position->second;
  }
  // REQUIRES: `name` is absent.
  Value& insert(const std::string& name, Value value) {
    make_space();
    return new_.emplace(name, std::move(value)).first->second;
  }
  size_t size() const { return new_.size() + old_.size(); }

 private:
  using Map = std::unordered_map<std::string, Value>;

  void make_space() {
    if (new_.size() < half_) return;
    old_ = std::exchange(new_, {});
  }

  const size_t half_;
  Map new_, old_;
};

}  // namespace tidemark
