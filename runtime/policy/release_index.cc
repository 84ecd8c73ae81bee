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
  if (!contains(storage)) return;
  unlink(*static_cast<Bucket*>(storage.hook.bucket), storage);
  storage.hook = {};
  --size_;
}

void ReleaseIndex::touch(Storage& storage) {
  if (!contains(storage)) return;
  Bucket& bucket = *static_cast<Bucket*>(storage.hook.bucket);
  unlink(bucket, storage);
  link(bucket, storage);
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
  auto [previous, next, unused] = storage.hook;
  (previous ? previous->hook.next : bucket.stalest) = next;
  (next ? next->hook.previous : bucket.freshest) = previous;
}

void ReleaseIndex::link(Bucket& bucket, Storage& storage) {
  Storage* before = bucket.freshest;
  while (before && is_fresher(*before, storage)) before = before->hook.previous;
  Storage* after = before ? before->hook.next : bucket.stalest;
  storage.hook = {before, after, &bucket};
  (before ? before->hook.next : bucket.stalest) = &storage;
  (after ? after->hook.previous : bucket.freshest) = &storage;
}

}  // namespace tidemark
