// Holds the losses of all lanes at the same step against each other, bit by bit.
//
// Threads: the caller sees to it that one at a time uses it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tidemark::compare {

struct LossMismatch {
  int64_t step = 0;
  std::string lane, other;  // who they were
  float loss = 0, other_loss = 0;
};

class LossBook {
 public:
  // The loss of `lane` at `step`. The first to arrive there is who the others are held against.
  void enter(int64_t step, const std::string& lane, float loss);

  int64_t compared() const { return compared_; }                               // pairs
  int64_t mismatched() const { return mismatched_; }                           // of them
  const std::vector<LossMismatch>& mismatches() const { return mismatches_; }  // the first few

 private:
  struct First {
    std::string lane;
    float loss = 0;
  };
  std::map<int64_t, First> first_;  // by step; old ones go
  int64_t compared_ = 0, mismatched_ = 0;
  std::vector<LossMismatch> mismatches_;
};

}  // namespace tidemark::compare
