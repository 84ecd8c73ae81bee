#include "runtime/residency/storages.h"

#include <algorithm>
#include <utility>

namespace tidemark {
namespace {

bool is_in_use(const Storage& storage) {
  return storage.users() > 0 && storage.residence() != Residence::kEmpty;
}

}  // namespace

Storages::~Storages() {
  for (Storage* s = newest_; s;) {
    s->orphan();
    s = std::exchange(s->managed.next, nullptr);
  }
}

IntrusivePtr<Storage> Storages::create(Bytes bytes, Category category, const char* origin) {
  uint32_t slot = slots_;
  if (free_slots_.empty()) {
    ++slots_;
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  auto storage = make_intrusive<Storage>(&owner_, next_id_++, slot, std::max(bytes, Bytes(1)),
                                         category, origin);
  storage->managed.next = newest_;
  if (newest_) newest_->managed.previous = storage.get();
  newest_ = storage.get();
  return storage;
}

void Storages::destroy(Storage& storage) {
  const ManagedStorage& s = storage.managed;
  (s.previous ? s.previous->managed.next : newest_) = s.next;
  if (s.next) s.next->managed.previous = s.previous;
  free_slots_.push_back(storage.slot());
  delete &storage;
}

std::vector<IntrusivePtr<Storage>> Storages::in_use() const {
  std::vector<IntrusivePtr<Storage>> found;
  for_each([&](Storage& s) {
    if (is_in_use(s)) found.emplace_back(&s);
  });
  return found;
}

Bytes Storages::bytes_in_use() const {
  Bytes sum{0};
  for_each([&](const Storage& s) {
    if (is_in_use(s)) sum += s.size();
  });
  return sum;
}

}  // namespace tidemark
