// Private to residency/: loops over storages.
#pragma once

#include "runtime/residency/residency.h"

namespace tidemark {

// Newest first. `visit` may not create or destroy storages.
template <class Visit>
void Residency::for_each_storage(Visit visit) {
  for (Storage* storage = storages_; storage; storage = storage->next_) {
    ++examined_;
    visit(*storage);
  }
}

}  // namespace tidemark
