// Asks the policy after an operator, and does what it decides.
#include "runtime/core/errors.h"
#include "runtime/residency/memory_timer.h"
#include "runtime/residency/residency.h"

namespace tidemark {

// Where a schedule leaves making space to the policy, the policy must know how far the step has
// come.
void Residency::note_issued(const Recipe& call, const BlockPlacement& placement) {
  try {
    const MemoryTimer timer(context_);
    context_.events.tell({.kind = StorageEvent::Kind::kIssued,
                          .call = &call,
                          .cost = context_.costs.time(call.cost_key)});
    if (!placement.scheduled()) ask_policy();
  } catch (const Error&) {
    // The call has been issued, and the rest was best effort. A device that has failed reports
    // that again at the next call.
  } catch (const Effort::Stopped&) {  // is thrown again at the next call
  }
}

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
