#include "runtime/schedule/schedule_validator.h"

#include "runtime/schedule/validator_notes.h"

namespace tidemark {

std::vector<std::string> schedule_violations(const StepTrace& trace, const PlanLimits& limits,
                                             const Schedule& schedule, size_t limit) {
  schedule_validator::Notes notes{trace, limits, schedule, limit};
  if (check_references(notes)) {
    check_storages(notes);
    check_space(notes);
  }
  return std::move(notes.found);
}

}  // namespace tidemark
