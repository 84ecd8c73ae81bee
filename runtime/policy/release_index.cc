#include "runtime/policy/release_index.h"

namespace tidemark {
namespace {

bool is_fresher(const Storage& a, const Storage& b) {
  return a.last_access != b.last_access ? a.last_access > b.last_access : a.id() > b.id();
}

}  // namespace

void ReleaseIndex::add(Storage& storage) {
  if (contains(storage)) return;
  link(bucket_of(storage.size()), storage);
  ++size_;
}

void ReleaseIndex::remove(Storage& storage) {
  Bucket* bucket = link_of(storage).bucket;
  if (!bucket) return;
  unlink(*bucket, storage);
  links_[storage] = {};
  --size_;
}

void ReleaseIndex::touch(Storage& storage) {
  Bucket* bucket = link_of(storage).bucket;
  if (!bucket) return;
  unlink(*bucket, storage);
  link(*bucket, storage);
}

ReleaseIndex::Bucket& ReleaseIndex::bucket_of(Bytes size) {
  Bucket*& bucket = by_size_[size.count()];
  if (!bucket) {
    buckets_.push_back(std::make_unique<Bucket>());
    bucket = buckets_.back().get();
    bucket->size = size;
  }
  return *bucket;
}

void ReleaseIndex::unlink(Bucket& bucket, Storage& storage) {
  auto [previous, next, unused] = link_of(storage);
  (previous ? links_[*previous].next : bucket.stalest) = next;
  (next ? links_[*next].previous : bucket.freshest) = previous;
}

// Searches for the storage's place from both ends at once: a storage just used is the freshest,
// one that comes back ahead of need is among the stalest.
void ReleaseIndex::link(Bucket& bucket, Storage& storage) {
  Storage* before = bucket.freshest;  // those beyond it are fresher
  Storage* after = bucket.stalest;    // those before it are staler
  while (before && is_fresher(*before, storage)) {
    if (is_fresher(*after, storage)) {
      before = link_of(*after).previous;
      break;
    }
    before = link_of(*before).previous;
    after = link_of(*after).next;
  }
  after = before ? link_of(*before).next : bucket.stalest;
  links_[storage] = {before, after, &bucket};
  (before ? links_[*before].next : bucket.stalest) = &storage;
  (after ? links_[*after].previous : bucket.freshest) = &storage;
}

}  // namespace tidemark
