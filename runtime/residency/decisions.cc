// Asking the policy at its moment, and doing what it says.
#include "runtime/residency/residency.h"

namespace tidemark {

void Residency::ask_policy() {
  Outcome last = Outcome::kNone;
  for (;;) {
    const Decision decision = policy_.after_operator(*this, last);
    if (decision.what == Decision::What::kNothing) return;
    last = apply(decision) ? Outcome::kDone : Outcome::kImpossible;
  }
}

bool Residency::apply(const Decision& decision) {
  using What = Decision::What;
  Storage& storage = *decision.storage;
  switch (decision.what) {
    case What::kRelease:
      return storage.resident() && storage.pins_ == 0 && release(storage, decision.reason);
    case What::kEvict: return release_by(storage, Action::kEvict, decision.reason);
    case What::kOffload: return release_by(storage, Action::kOffload, decision.reason);
    case What::kCopyOut: return copy_out(storage, decision.reason);
    case What::kPrefetch:
      return storage.residence() == Residence::kOffloaded && prefetch(storage);
    case What::kNothing: break;
  }
  return false;
}

}  // namespace tidemark
