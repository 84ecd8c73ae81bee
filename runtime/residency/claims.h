// Private to residency/: what a recomputation under way will read.
#pragma once

#include <utility>
#include <vector>

#include "runtime/residency/residency.h"

namespace tidemark {

// While claimed, a storage is neither evicted nor, if it has no users, freed. The austere
// schedule may still offload it.
class Residency::Claims {
 public:
  explicit Claims(Residency& residency) : residency_(&residency) {}
  Claims(Claims&& other) noexcept
      : residency_(other.residency_), storages_(std::exchange(other.storages_, {})) {}
  Claims& operator=(Claims&&) = delete;
  ~Claims() { drop(); }

  // Those that defer() made for a call.
  static Claims adopt(Residency& residency, const Recipe& call) {
    Claims claims(residency);
    for (const Recipe::Input& input : call.inputs) claims.storages_.push_back(input.storage);
    return claims;
  }

  void add(Storage& storage) {
    ++storage.wanted_;
    storages_.emplace_back(&storage);
  }
  void drop() {
    for (const auto& storage : std::exchange(storages_, {})) {
      if (--storage->wanted_ == 0 && storage->pins_ == 0 && storage->users_ == 0) {
        residency_->settle_unused(*storage);
      }
    }
  }

 private:
  Residency* residency_;
  std::vector<IntrusivePtr<Storage>> storages_;
};

}  // namespace tidemark
