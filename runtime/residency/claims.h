// Private to residency/: what is held until it has been read, and let go of however that ends.
#pragma once

#include <utility>
#include <vector>

#include "runtime/residency/rematerialiser.h"
#include "runtime/tensor/recipe.h"

namespace tidemark {

// While claimed, a storage is neither evicted nor, if nobody needs it, freed. The austere
// schedule may still offload it.
class Claims {
 public:
  explicit Claims(Rematerialiser& rematerialiser) : rematerialiser_(&rematerialiser) {}
  Claims(Claims&& other) noexcept
      : rematerialiser_(other.rematerialiser_), storages_(std::exchange(other.storages_, {})) {}
  Claims& operator=(Claims&&) = delete;
  ~Claims() { drop(); }

  void add(Storage& storage) {
    rematerialiser_->claim(storage);
    storages_.emplace_back(&storage);
  }
  void drop() {
    for (const auto& storage : std::exchange(storages_, {})) rematerialiser_->unclaim(*storage);
  }

 private:
  Rematerialiser* rematerialiser_;
  std::vector<IntrusivePtr<Storage>> storages_;
};

}  // namespace tidemark
