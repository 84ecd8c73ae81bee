// Copies values from and to host memory, and keeps that memory until the copies are done,
// because a failed copy is tried again.
//
// Threads: the session's issuing thread.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <span>

#include "runtime/residency/context.h"
#include "runtime/residency/host_pieces.h"
#include "runtime/residency/placement.h"
#include "runtime/residency/space.h"
#include "runtime/residency/state_changes.h"

namespace tidemark {

class HostCopies {
 public:
  HostCopies(ResidencyContext& context, StateChanges& changes, Space& space)
      : context_(context), changes_(changes), space_(space) {}

  // Fills an empty storage from host memory, which `keep_alive` owns until the copy is done.
  // `from` may be null on devices without data. False if the block does not lie where the
  // placement says.
  bool upload(Storage& storage, const void* from, std::shared_ptr<const void> keep_alive,
              const BlockPlacement& placement);
  // As above, with values from `source`, which is not called on devices without data. Host
  // memory holds a few pieces at a time. If anything throws, the storage stays empty.
  void upload(Storage& storage, const PieceSource& source);
  // Waits for the bytes [offset, offset + bytes) and passes them to `sink`. False on devices
  // without data, where `sink` is not called. REQUIRES: resident.
  bool download(Storage& storage, Bytes offset, Bytes bytes, const PieceSink& sink);

  // Frees the buffers of finished copies, oldest first, up to one that is not; `wait`: waits
  // for all.
  void settle(bool wait);
  // Number of copies that may be under way.
  int64_t count() const { return static_cast<int64_t>(buffers_.size()); }

 private:
  // Host memory that an unfinished copy reads or writes.
  struct Buffer {
    Event done;
    std::shared_ptr<const void> keep_alive;
    Bytes bytes{0};
  };
  void hold(const Event& done, std::shared_ptr<const void> memory, Bytes bytes);
  void free_oldest();  // waits for its copy
  // Waits for the oldest copies until unfinished copies hold at most `most` of host memory.
  void bound(Bytes most);

  ResidencyContext& context_;
  StateChanges& changes_;
  Space& space_;
  std::deque<Buffer> buffers_;  // oldest first
  Bytes held_{0};
};

}  // namespace tidemark
