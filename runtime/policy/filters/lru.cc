#include "runtime/policy/filters/filter.h"

namespace tidemark {

double lru_score(double /*bytes*/, double staleness_ns) { return 1.0 / staleness_ns; }

}  // namespace tidemark
