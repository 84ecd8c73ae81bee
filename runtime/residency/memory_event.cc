#include "runtime/residency/memory_event.h"

#include "runtime/residency/residency.h"

namespace tidemark {

bool carry_out(MemoryEvent::Kind decision, Storage& storage, Residency& residency,
               std::optional<Offset> at) {
  using Kind = MemoryEvent::Kind;
  switch (decision) {
    case Kind::kEvict: return residency.release_by(storage, Action::kEvict, Reason::kPlan);
    case Kind::kOffload: return residency.release_by(storage, Action::kOffload, Reason::kPlan);
    case Kind::kGiveUpCopy: return residency.give_up_copy(storage);
    case Kind::kCopyOut:
      return residency.has_copy(storage) || residency.copy_out(storage, Reason::kPlan);
    case Kind::kPrefetch:
      return storage.residence() == Residence::kOffloaded &&
             (at || residency.make_hole(storage.size())) && residency.prefetch(storage, at);
    case Kind::kBlock:
    case Kind::kEndOfCall: break;
  }
  return false;
}

}  // namespace tidemark
