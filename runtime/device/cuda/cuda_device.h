// A GPU as a Device: three non-blocking streams, plain device memory, pinned host memory.
//
// - Kernels are issued on the calling thread: Work::run gets the cudaStream_t, and is
//   destroyed when enqueue() returns. A kernel that cannot be launched throws at once, after
//   all other work has finished, and nothing has been enqueued.
// - Host work (enqueue_host) runs in stream order, each stream's on a thread of its own. If it
//   throws, its stream is held there, as device.h says, and every call throws until resume().
// - Work that runs for the first time waits for all host work: CUDA may load its code, and may
//   wait for all streams to do so. So does any work before the first launch of a kernel, and
//   work of more launches than may be in flight beside host work, such as a convolution of many
//   slices.
// - Copies between device and pinned memory are direct; pageable memory is copied in pieces
//   through a pinned buffer per stream, in stream order: the issuing thread never waits.
// - Consecutive work on one stream with one tag is one Completion.
// - A fault in a running kernel ends the use of the GPU by this process: every later call
//   throws, and resume() does not help.
//
// Memory outside the arena: the driver's context and the libraries' handles (profile().memory
// reserves space for them), and 4 MiB of pinned memory per direction that copies pageable
// memory.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "runtime/device/cuda/driver.h"
#include "runtime/device/cuda/host_memory.h"
#include "runtime/device/device.h"

namespace tidemark {

struct CudaDeviceOptions {
  // The maximum commands in flight per stream while host work is pending. Launching into a full
  // queue waits, inside CUDA, for the stream; if the stream is held by failed host work, this
  // wait never ends. CUDA's queues hold about a thousand commands. Work of more launches
  // than this in its last run waits for all host work.
  int64_t commands_beside_host_work = 256;
  // The maximum tickets in flight per stream.
  Ticket tickets_in_flight = kMaxInFlight;
  Bytes pin_chunk = kPinChunk;
  Bytes staging{4 << 20};  // per direction; a multiple of 4096
};

// `profile` must match the GPU of `driver`; name as in "cuda:0".
std::unique_ptr<Device> make_cuda_device_on(std::shared_ptr<CudaDriver> driver,
                                            const std::string& name,
                                            const DeviceProfile& profile,
                                            const CudaDeviceOptions& options = {});

}  // namespace tidemark
