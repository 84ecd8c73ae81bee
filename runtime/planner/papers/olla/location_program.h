// OLLA, section 3.3 and program (15): each tensor's offset, given its lifetime, as an integer
// program.
//
//   minimise peak                                                                    (15)
//   a[i,j] + b[i,j] <= 1, and = 1 if i and j ever live together                       (6)
//   A_i + S_i - A_j <= (1 - a[i,j]) M              a: i lies below j                 (7a)
//   A_i - A_j - S_j >= (b[i,j] - 1) M              b: i lies above j                 (7b)
//   peak >= A_e + S_e                                                                 (8)
//
// The A_i are real numbers here, not integers: given a and b, the least solution consists of
// sums of sizes anyway, and offsets in whole bytes are made from the order of the A_i.
//
// Threads: one object, one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/planner/layout/layout.h"
#include "runtime/planner/papers/solver/program.h"

namespace tidemark::planner::olla {

struct LocationOptions {
  // Section 4.2: no constraints for pairs that do not overlap. With fixed lifetimes, these are
  // exactly the pairs that precedence and MUL ranges find. Off: all pairs.
  bool precedence = true;
  // Section 4.5: buffers already placed. Where a stack of them, from 0 upwards and without
  // gaps, outlives another buffer on both sides, it bounds that buffer's address from below and
  // forms no pairs with it: "the address space available for these tensors is noticeably
  // reduced".
  std::vector<std::pair<int, Offset>> placed;
  std::vector<Bytes> ceilings;  // per buffer: its highest end; empty: only the limit holds
  Bytes limit{0};               // M: higher layouts are ignored. 0: the sum of sizes
  Bytes bound{0};               // a known lower bound on every layout
  double unit = 1;
};

// Names in both programs for variables of two tensors: a[3,5].
std::string pair_name(const char* what, size_t i, size_t j);
// The tensors that have a variable A, in the order of its value.
std::vector<size_t> by_address(const std::vector<int>& address,
                               const std::vector<double>& values);

class LocationProgram {
 public:
  LocationProgram(const std::vector<Buffer>& buffers, LocationOptions options);
  // The number of terms in the rows for pairs that the constructor would make, to reject large
  // programs first. O(n log n + n * placed).
  static int64_t term_count(const std::vector<Buffer>& buffers, const LocationOptions& options);

  Program& program() { return program_; }
  // Offsets in whole bytes: buffers in the order of their A, each as low as those below allow.
  Offsets offsets(const std::vector<double>& values) const;
  // REQUIRES: `offsets` is a layout below the limit that respects `placed`.
  std::vector<double> solution(const Offsets& offsets) const;

 private:
  struct Pair {
    int i, j;
    int a, b;  // variables
  };
  const std::vector<Buffer>& buffers_;
  LocationOptions options_;
  Program program_;
  int peak_ = -1;
  std::vector<int> address_;  // per buffer: variable A; -1 if it takes no space
  std::vector<Pair> pairs_;
};

// An initial layout: keeps `placed`; other buffers go largest first, each at the lowest offset
// free for all its life. O(n^2).
Offsets fit_around(const std::vector<Buffer>& buffers,
                   const std::vector<std::pair<int, Offset>>& placed);

}  // namespace tidemark::planner::olla
