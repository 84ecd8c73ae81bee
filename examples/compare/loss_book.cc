#include "examples/compare/loss_book.h"

#include <bit>

namespace tidemark::compare {
namespace {

// Lanes are at most a step apart, also a lane that starts anew from another's state.
constexpr size_t kStepsKept = 1024;
constexpr size_t kMismatchesKept = 8;

}  // namespace

void LossBook::enter(int64_t step, const std::string& lane, float loss) {
  const auto [at, is_first] = first_.try_emplace(step, First{lane, loss});
  if (is_first) {
    if (first_.size() > kStepsKept) first_.erase(first_.begin());
    return;
  }
  ++compared_;
  if (std::bit_cast<uint32_t>(loss) == std::bit_cast<uint32_t>(at->second.loss)) return;
  ++mismatched_;
  if (mismatches_.size() < kMismatchesKept) {
    mismatches_.push_back({step, lane, at->second.lane, loss, at->second.loss});
  }
}

}  // namespace tidemark::compare
