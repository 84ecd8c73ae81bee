// Values on their way from and to host memory, which is held until the copies are done: one
// that fails is tried again.
//
// Threads: the session's issuing thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "runtime/residency/context.h"
#include "runtime/residency/placement.h"
#include "runtime/residency/space.h"
#include "runtime/residency/state_changes.h"

namespace tidemark {

// A piece at a time and in order. Pieces begin at multiples of kHostPiece; all but the last
// have that size. A source's are aligned for any number. Neither may use the session; what
// either throws ends the transfer.
inline constexpr Bytes kHostPiece{2 << 20};
using PieceSource = std::function<void(Bytes offset, std::span<std::byte> piece)>;
using PieceSink = std::function<void(std::span<const std::byte> piece)>;
// Copies the pieces to `to`, one behind the other.
PieceSink copy_into(void* to);

class HostCopies {
 public:
  HostCopies(ResidencyContext& context, StateChanges& changes, Space& space)
      : context_(context), changes_(changes), space_(space) {}

  // Fills an empty storage from host memory that `keep_alive` holds until the copy is done.
  // `from` may be null on devices without data.
  // False if its block does not lie where the placement says.
  bool upload(Storage& storage, const void* from, std::shared_ptr<const void> keep_alive,
              const BlockPlacement& placement);
  // The same from `source`, which is not called on devices without data. Host memory holds a
  // few pieces at a time. If anything throws, the storage stays empty.
  void upload(Storage& storage, const PieceSource& source);
  // Waits for the bytes [offset, offset + bytes) and gives them to `sink`. False, and `sink` is
  // not called, on devices without data. REQUIRES: resident.
  bool download(Storage& storage, Bytes offset, Bytes bytes, const PieceSink& sink);

  // Lets go of what is done; `wait`: of all.
  void settle(bool wait);
  // Copies that may be under way.
  int64_t count() const { return static_cast<int64_t>(buffers_.size()); }

 private:
  // Host memory that a copy under way reads or writes.
  struct Buffer {
    Event done;
    std::shared_ptr<const void> keep_alive;
    Bytes bytes{0};
  };
  // Waits for the oldest copies, until those under way hold no more host memory than that.
  void bound(Bytes most);

  ResidencyContext& context_;
  StateChanges& changes_;
  Space& space_;
  std::vector<Buffer> buffers_;
};

}  // namespace tidemark
