// Batches of a dataset, read ahead by background threads into a fixed set of buffers.
//
//   Loader loader(std::move(train), {.batch = 64, .shuffle = true, .seed = 1});
//   for (int epoch = 0; epoch < 10; ++epoch) {
//     while (std::optional<HostBatch> batch = loader.next()) step(*batch);
//   }
//
// Where a GPU trains, `loader.pin(session.device())` before the first batch: it then copies
// from the buffers at full speed.
//
// The batches depend on (dataset, batch, shuffle, seed, drop_last) and the position alone: not
// on threads, on prefetch_batches, nor on timing.
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
  uint64_t seed = 0;       // of the order and of the dataset's crops and flips
  bool drop_last = false;  // leave out an epoch's last batch if it is smaller
  // Batches read ahead, also across the end of an epoch. There is one buffer more than that:
  // the one being used.
  int64_t prefetch_batches = 2;
  int64_t threads = 1;  // they share each batch, so a single batch is faster too
};

// What Loader::buffer_bytes() is of a loader of so many samples of this shape, before there is
// one. `scratch`: Dataset::scratch_bytes().
Bytes loader_buffer_bytes(int64_t samples, const Shape& sample, Bytes scratch,
                          const LoaderOptions& options);

// The batch that comes next. Saved with a checkpoint, it resumes a run exactly.
struct LoaderPosition {
  int64_t epoch = 0;
  int64_t batch = 0;  // within the epoch; batches_per_epoch() is its end
  bool operator==(const LoaderPosition&) const = default;
};

// Shares ownership of one of the loader's buffers, which is refilled once the last copy of
// `pixels` and `labels` is gone; may outlive the loader, and be dropped by any thread (but see
// Loader::pin()).
struct HostBatch {
  LoaderPosition position;
  int64_t size = 0;  // N; the last batch of an epoch may be smaller
  Shape shape;       // (N, H, W, C)
  std::shared_ptr<float[]> pixels;
  std::shared_ptr<int64_t[]> labels;  // N of them
  Bytes bytes;                        // of pixels and labels
};

// Threads: next(), seek(), position() and pin() by one thread at a time.
class Loader {
 public:
  // Starts reading at epoch 0. Throws UsageError if options or dataset give no batch at all.
  Loader(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options);
  ~Loader();  // stops after the samples being read just now; never waits for the consumer
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // From now on `device` copies from the batches at full speed: on a GPU their memory is
  // pinned, now, which takes about as long as writing all of it; on other devices nothing
  // happens. It takes the place of a device given before, and may go before the loader. Throws
  // DeviceError if the GPU is lost. REQUIRES: what the device before was to copy, if anything,
  // has been copied. Called by the device's issuing thread, which also destroys the loader and
  // drops what batches outlive it.
  void pin(Device& device);

  // The next batch; nothing, once, at the end of each epoch, after which the next one begins.
  // Rethrows what Dataset::read() threw for a sample of this batch (the first in the batch, if
  // several); the position stays, so calling again tries again, and seek() can pass over it.
  // REQUIRES: at most prefetch_batches batches are still held; throws UsageError if all buffers
  // are, since waiting could last for ever.
  std::optional<HostBatch> next();

  LoaderPosition position() const { return next_; }
  // Continues from there; what was read ahead is dropped. Throws UsageError outside of an
  // epoch.
  void seek(LoaderPosition position);

  int64_t batches_per_epoch() const;
  const Dataset& dataset() const { return *dataset_; }

  // All host memory that loading takes, at most and from the start, beside what the dataset
  // itself holds (Dataset::resident_bytes()): batch buffers, epoch orders, and the threads'
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
