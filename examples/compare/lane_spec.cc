#include "examples/compare/lane_spec.h"

#include "runtime/core/errors.h"
#include "runtime/policy/filters/filter.h"
#include "runtime/policy/registry.h"

namespace tidemark::compare {

LaneSpec parse_lane(std::string_view text) {
  LaneSpec spec;
  const size_t at = text.find('@');
  if (at != std::string_view::npos) {
    spec.budget = parse_budget(text.substr(at + 1));
    text = text.substr(0, at);
  }
  const size_t colon = text.find(':');
  spec.policy = text.substr(0, colon);
  if (spec.managed()) find_policy(spec.policy);
  if (colon != std::string_view::npos) {
    spec.filter = text.substr(colon + 1);
    find_filter(spec.filter);
    check_takes_filter(spec.policy);
  }
  return spec;
}

}  // namespace tidemark::compare
