#include "runtime/residency/host_copies.h"

#include <algorithm>
#include <utility>

#include "runtime/core/errors.h"

namespace tidemark {
namespace {

// Limits on host memory that waits for its copy: for whole uploads, and for uploads in pieces,
// which are made as the copies proceed.
constexpr Bytes kMaxUploading{32 << 20};
constexpr Bytes kMaxPieces = kHostPiece * 2;

}  // namespace

PieceSink copy_into(void* to) {
  return [out = static_cast<std::byte*>(to)](std::span<const std::byte> piece) mutable {
    out = std::copy(piece.begin(), piece.end(), out);
  };
}

bool HostCopies::upload(Storage& storage, const void* from,
                        std::shared_ptr<const void> keep_alive,
                        const BlockPlacement& placement) {
  TIDEMARK_CHECK(storage.residence() == Residence::kEmpty, "uploads fill empty storages");
  settle(/*wait=*/false);
  // Data comes one batch at a time, from memory that its loader bounds; parameters come all at
  // once. The simulator holds no memory, but waits as long.
  const bool counts = storage.category != Category::kData;
  if (counts) bound(std::max(kMaxUploading - storage.bytes(), Bytes(0)));
  PlacementCursor place(placement);
  NewBlock block = space_.allocate(storage, StreamId::kReload, place);
  const Event done = context_.device.copy(
      StreamId::kReload, {context_.arena.address(block.offset()),
                          static_cast<const std::byte*>(from), storage.bytes(), 0});
  hold(done, std::move(keep_alive), counts ? storage.bytes() : Bytes(0));
  storage.last_access = context_.clock;
  changes_.take_block(storage, block, done, StorageEvent::Kind::kUploaded);
  return place.kept();
}

void HostCopies::upload(Storage& storage, const PieceSource& source) {
  TIDEMARK_CHECK(storage.residence() == Residence::kEmpty, "uploads fill empty storages");
  NewBlock block = space_.allocate(storage, StreamId::kReload);
  std::byte* const to = context_.arena.address(block.offset());
  const bool has_data = context_.device.has_data();
  Event done;
  for (Bytes at{0}; at < storage.bytes(); at += kHostPiece) {
    const Bytes size = std::min(kHostPiece, storage.bytes() - at);
    const auto count = static_cast<size_t>(has_data ? size.count() : 0);
    const std::shared_ptr<std::byte[]> piece(new std::byte[count]);
    if (has_data) source(at, {piece.get(), count});
    done = context_.device.copy(StreamId::kReload,
                                {has_data ? to + at.count() : nullptr, piece.get(), size, 0});
    block.fence().include(done);
    hold(done, piece, size);
    bound(kMaxPieces);
  }
  storage.last_access = context_.clock;
  changes_.take_block(storage, block, done, StorageEvent::Kind::kUploaded);
}

void HostCopies::settle(bool wait) {
  while (!buffers_.empty() && (wait || context_.device.done(buffers_.front().done))) {
    free_oldest();
  }
}

void HostCopies::bound(Bytes most) {
  while (held_ > most) free_oldest();
  settle(/*wait=*/false);
}

void HostCopies::hold(const Event& done, std::shared_ptr<const void> memory, Bytes bytes) {
  held_ += bytes;
  buffers_.push_back({done, std::move(memory), bytes});
}

void HostCopies::free_oldest() {
  context_.device.synchronize(buffers_.front().done);
  held_ -= buffers_.front().bytes;
  buffers_.pop_front();
}

bool HostCopies::download(Storage& storage, Bytes offset, Bytes bytes, const PieceSink& sink) {
  context_.events.tell(StorageEvent::Kind::kUsed, &storage);
  // The copy goes through a buffer of our own: a failed copy is tried again, when the caller's
  // memory may be gone.
  const bool has_data = context_.device.has_data();
  const Bytes piece = std::min(bytes, kHostPiece);
  const auto size = static_cast<size_t>(has_data ? piece.count() : 0);
  const std::shared_ptr<std::byte[]> buffer = std::make_shared_for_overwrite<std::byte[]>(size);
  context_.device.wait(StreamId::kOffload, storage.managed.written);
  for (Bytes at{0}; at < bytes; at += piece) {
    const Bytes part = std::min(piece, bytes - at);
    const std::byte* from =
        has_data ? context_.arena.address(storage.managed.block.offset + offset + at) : nullptr;
    const Event done = context_.device.copy(StreamId::kOffload, {buffer.get(), from, part, 0});
    storage.managed.touched.include(done);
    hold(done, buffer, Bytes(0));
    context_.device.synchronize(done);
    if (has_data) sink({buffer.get(), static_cast<size_t>(part.count())});
  }
  settle(/*wait=*/false);
  return has_data;
}

}  // namespace tidemark
