#include "runtime/policy/filters/filter.h"

namespace tidemark {

double base_score(double bytes, double staleness_ns) { return 1.0 / (bytes * staleness_ns); }

}  // namespace tidemark
