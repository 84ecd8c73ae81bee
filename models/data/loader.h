// Reads batches of a dataset ahead, on background threads, into a fixed set of buffers.
//
//   Loader loader(std::move(train), {.batch = 64, .shuffle = true, .seed = 1});
//   for (int epoch = 0; epoch < 10; ++epoch) {
//     while (std::optional<HostBatch> batch = loader.next()) step(*batch);
//   }
//
// When training on a GPU, call `loader.pin(session.device())` before the first batch; the GPU
// then copies from the buffers at full speed.
//
// The batches depend only on (dataset, batch, shuffle, seed, drop_last) and the position, not
// on threads, prefetch_batches or timing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "models/data/dataset.h"
#include "runtime/core/shape.h"
#include "runtime/core/units.h"

namespace tidemark {

class Device;

struct LoaderOptions {
  int64_t batch = 1;
  bool shuffle = false;    // a new order each epoch, from (seed, epoch)
  uint64_t seed = 0;       // for the order and for the dataset's crops and flips
  bool drop_last = false;  // leave out an epoch's last batch if it is smaller
  // Batches read ahead, also across the end of an epoch. The loader has one more buffer, for
  // the batch in use.
  int64_t prefetch_batches = 2;
  int64_t threads = 1;  // share the work on each batch, so a single batch is faster too
};

// What Loader::buffer_bytes() will be for a loader of `samples` samples of shape `sample`;
// needs no loader. `scratch`: Dataset::scratch_bytes().
Bytes loader_buffer_bytes(int64_t samples, const Shape& sample, Bytes scratch,
                          const LoaderOptions& options);

// The position of the next batch. A checkpoint saves it to resume a run exactly.
struct LoaderPosition {
  int64_t epoch = 0;
  int64_t batch = 0;  // within the epoch; batches_per_epoch() is its end
  bool operator==(const LoaderPosition&) const = default;
};

// Shares ownership of one of the loader's buffers. The loader refills the buffer once the last
// copy of `pixels` and `labels` is gone. A batch may outlive the loader, and any thread may
// destroy it (but see Loader::pin()).
struct HostBatch {
  LoaderPosition position;
  int64_t size = 0;  // N; the last batch of an epoch may be smaller
  Shape shape;       // (N, H, W, C)
  std::shared_ptr<float[]> pixels;
  std::shared_ptr<int64_t[]> labels;  // N of them
  Bytes bytes;                        // of pixels and labels
};

// Threads: one thread at a time may call next(), seek(), position() and pin().
class Loader {
 public:
  // Starts reading at epoch 0. Throws UsageError if the options and the dataset give no batch.
  Loader(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options);
  ~Loader();  // finishes the samples being read; never waits for the consumer
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // Lets `device` copy from the batches at full speed from now on. For a GPU, this pins the
  // batches' memory immediately, which takes about as long as writing all of it; for other
  // devices, it does nothing. Replaces any device set before; the device may be destroyed
  // before the loader. Throws DeviceError if the GPU is lost. REQUIRES: the previous device, if
  // any, has finished its copies; the device's issuing thread calls this, destroys the loader,
  // and destroys any batches that outlive it.
  void pin(Device& device);

  // Returns the next batch. At the end of each epoch, returns nothing once; the next epoch then
  // begins. Rethrows the exception of Dataset::read() for a sample of this batch (the first in
  // the batch, if several). The position does not advance then, so calling again retries, and
  // seek() can skip the batch. REQUIRES: at most prefetch_batches batches are still held;
  // throws UsageError if all buffers are, because waiting could last forever.
  std::optional<HostBatch> next();

  LoaderPosition position() const { return next_; }
  // Continues from `position`; batches read ahead are dropped. Throws UsageError for a position
  // outside an epoch.
  void seek(LoaderPosition position);

  int64_t batches_per_epoch() const;
  const Dataset& dataset() const { return *dataset_; }

  // An upper bound, valid from the start, on all host memory that loading takes besides the
  // dataset itself (Dataset::resident_bytes()): batch buffers, epoch orders, and the threads'
  // scratch.
  Bytes buffer_bytes() const;

 private:
  struct State;  // outlives the loader while a batch is held
  void shut_down();
  void rewind(LoaderPosition position);

  std::shared_ptr<const Dataset> dataset_;
  std::shared_ptr<State> state_;
  std::vector<std::thread> threads_;
  LoaderPosition next_;
};

}  // namespace tidemark
