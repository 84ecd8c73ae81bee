// Asking the policy at its moment, and doing what it says.
#include "runtime/residency/residency.h"

namespace tidemark {

void Residency::ask_policy() {
  Outcome last = Outcome::kNone;
  for (;;) {
    const Decision decision = context_.policy.after_operator(view_, last);
    if (decision.what == Decision::What::kNothing) return;
    last = apply(decision) ? Outcome::kDone : Outcome::kImpossible;
  }
}

bool Residency::apply(const Decision& decision) {
  using What = Decision::What;
  Storage& storage = *decision.storage;
  switch (decision.what) {
    case What::kRelease:
      return storage.resident() && storage.managed.pins == 0 &&
             transfers_.release(storage, decision.reason);
    case What::kEvict: return transfers_.release_by(storage, Action::kEvict, decision.reason);
    case What::kOffload:
      return transfers_.release_by(storage, Action::kOffload, decision.reason);
    case What::kCopyOut: return transfers_.copy_out(storage, decision.reason);
    case What::kPrefetch: return storage.managed.offloaded() && transfers_.prefetch(storage);
    case What::kNothing: break;
  }
  return false;
}

}  // namespace tidemark
