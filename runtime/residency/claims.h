// Private to residency/: claims on storages until they have been read, released on destruction.
#pragma once

#include <utility>
#include <vector>

#include "runtime/residency/rematerialiser.h"
#include "runtime/tensor/recipe.h"

namespace tidemark {

// While claimed, a storage is neither evicted nor, if unused, freed. The last resort may still
// offload it.
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
