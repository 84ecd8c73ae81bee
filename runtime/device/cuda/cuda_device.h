// A GPU as a Device: three non-blocking streams, plain device memory, pinned host memory.
//
// - Kernels are issued on the calling thread: Work::run gets the cudaStream_t, and what it
// holds
//   is destroyed when enqueue() returns. A kernel that cannot be launched throws at once, after
//   everything else has been let finish, and nothing has been enqueued.
// - Host work (enqueue_host) runs on the driver's threads in stream order. If it throws, its
//   stream is held there, as device.h says, and every call throws until resume().
// - Copies go straight between device and pinned memory; from or to pageable memory in pieces
//   through a pinned buffer of each stream, in stream order: the issuing thread never waits.
// - Pieces of work that are enqueued in a row on one stream with one tag are one Completion.
// - A fault of a running kernel ends the use of the GPU by this process: every call throws from
//   then on, and resume() does not help.
//
// Memory outside the arena: the driver's context and the libraries' handles (profile().memory
// leaves room for them), 4 MiB of pinned memory for each direction that copies pageable memory.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "runtime/device/cuda/driver.h"
#include "runtime/device/cuda/host_memory.h"
#include "runtime/device/device.h"

namespace tidemark {

struct CudaDeviceOptions {
  // With host work pending, the commands that a stream may have in flight. Launching into a
  // full queue waits, inside CUDA, for the stream; if that stream is held by host work that
  // failed, for ever. CUDA's queues hold about a thousand, and an operator may be several
  // launches.
  int64_t commands_beside_host_work = 256;
  // The most tickets that a stream may have in flight.
  Ticket tickets_in_flight = kMaxInFlight;
  Bytes pin_chunk = kPinChunk;
  Bytes staging{4 << 20};  // of each direction; a multiple of 4096
};

// `profile` must hold true of the GPU that `driver` drives; name as in "cuda:0".
std::unique_ptr<Device> make_cuda_device_on(std::shared_ptr<CudaDriver> driver,
                                            const std::string& name,
                                            const DeviceProfile& profile,
                                            const CudaDeviceOptions& options = {});

}  // namespace tidemark
