#include "runtime/policy/filters/filter.h"

namespace tidemark {

double greedy_score(double bytes, double /*staleness_ns*/) { return 1.0 / bytes; }

}  // namespace tidemark
