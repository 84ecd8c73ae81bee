// A map by name that keeps what was looked up of late: in a program of ever new shapes it would
// grow without end otherwise.
//
// Two generations: what is found in the old one moves to the new one; once that is half of what
// may be kept, the old one goes and they change places. So the latest `most` / 2 are always
// there.
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

  // Null if it is not there. Stays where it is until `most` / 2 others have been looked up.
  Value* find(const std::string& name) {
    if (const auto found = new_.find(name); found != new_.end()) return &found->second;
    const auto found = old_.find(name);
    if (found == old_.end()) return nullptr;
    auto node = old_.extract(found);
    make_space();
    return &new_.insert(std::move(node)).position->second;
  }
  // REQUIRES: it is not there.
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
