#include "runtime/tensor/tensor.h"

#include "runtime/tensor/recipe.h"

namespace tidemark {

Storage::Storage(StorageOwner* owner, uint32_t id, uint32_t slot, Bytes bytes,
                 Category category_, const char* origin)
    : category(category_),
      name(origin),
      owner_(owner),
      id_(id),
      slot_(slot),
      bytes_(bytes),
      origin_(origin) {}

Storage::~Storage() = default;

void Storage::dispose() {
  if (owner_) {
    owner_->on_unreferenced(*this);
  } else {
    delete this;
  }
}

bool TensorMeta::is_contiguous() const {
  int64_t step = 1;
  for (size_t i = shape.rank(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != step) return false;
    step *= shape[i];
  }
  return true;
}

}  // namespace tidemark
