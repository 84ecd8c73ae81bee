// The budget as integer programs see it.
//
// Threads: values, no state.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tidemark::planner::remat {

struct BudgetUnit {
  // Solvers' tolerances suit numbers of about 1,000. Of a large budget they may exceed a row by
  // about a millionth, which is taken off so that schedules fit.
  explicit BudgetUnit(int64_t budget)
      : unit(std::max(1.0, static_cast<double>(budget) / 1000)),
        limit(static_cast<double>(budget) * (budget > 1'000'000 ? 1 - 2e-6 : 1) / unit) {}

  double unit = 1;   // bytes
  double limit = 0;  // the budget, in units
};

}  // namespace tidemark::planner::remat
