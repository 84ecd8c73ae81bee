// Compares the losses of all lanes at the same step, bit by bit.
//
// Threads: one at a time, ensured by the caller.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tidemark::compare {

struct LossMismatch {
  int64_t step = 0;
  std::string lane, other;  // the lanes compared
  float loss = 0, other_loss = 0;
};

class LossBook {
 public:
  // Records the loss of `lane` at `step`. All later losses of that step are compared with the
  // first.
  void enter(int64_t step, const std::string& lane, float loss);

  int64_t compared() const { return compared_; }                               // pairs
  int64_t mismatched() const { return mismatched_; }                           // of them
  const std::vector<LossMismatch>& mismatches() const { return mismatches_; }  // the first few

 private:
  struct First {
    std::string lane;
    float loss = 0;
  };
  std::map<int64_t, First> first_;  // by step; old steps are dropped
  int64_t compared_ = 0, mismatched_ = 0;
  std::vector<LossMismatch> mismatches_;
};

}  // namespace tidemark::compare
