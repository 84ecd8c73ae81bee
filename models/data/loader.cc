#include "models/data/loader.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <numeric>
#include <utility>

#include "models/data/random.h"
#include "runtime/device/device.h"
#include "runtime/device/pages.h"

namespace tidemark {
namespace {

using Order = std::vector<int64_t>;  // sample indices of one epoch

Order make_order(int64_t samples, const LoaderOptions& options, int64_t epoch) {
  Order order(static_cast<size_t>(samples));
  std::iota(order.begin(), order.end(), int64_t{0});
  if (options.shuffle) {
    shuffle(order,
            CounterRandom(options.seed, RandomStream::kOrder, static_cast<uint64_t>(epoch)));
  }
  return order;
}

int64_t count_batches(int64_t samples, const LoaderOptions& options) {
  const bool smaller_last = samples % options.batch != 0 && !options.drop_last;
  return samples / options.batch + (smaller_last ? 1 : 0);
}

// The sizes of a batch's pixels and labels in a buffer.
struct BufferSizes {
  Bytes pixels, labels;
  Bytes pool;  // all buffers together
};
BufferSizes buffer_sizes(int64_t samples, const Shape& sample, const LoaderOptions& options) {
  const int64_t most = std::min(options.batch, samples);
  BufferSizes sizes;
  sizes.pixels = align_up(Bytes(4 * most * sample.elements()));
  sizes.labels = align_up(Bytes(8 * most));
  sizes.pool =
      align_up((options.prefetch_batches + 1) * (sizes.pixels + sizes.labels), page_size());
  return sizes;
}

}  // namespace

Bytes loader_buffer_bytes(int64_t samples, const Shape& sample, Bytes scratch,
                          const LoaderOptions& options) {
  const int64_t batches = std::max<int64_t>(1, count_batches(samples, options));
  // k batches in a row touch at most this many epochs.
  const int64_t orders = (options.prefetch_batches + 1 + batches - 2) / batches + 1;
  return buffer_sizes(samples, sample, options).pool + Bytes(orders * samples * 8) +
         options.threads * scratch;
}

// Where the threads and the consumer meet. Batches are begun in order, and each gets a buffer
// when it is begun, so the batch that the consumer waits for never lacks one. Samples are
// handed out in chunks:
//
//   filling:  [ ready | ready | taken..done..| ]     free: the other buffers not held outside
//              front: goes out next             back: chunks are taken from this one only
struct Loader::State {
  struct Slot {
    float* pixels = nullptr;
    int64_t* labels = nullptr;
    LoaderPosition position;
    std::shared_ptr<const Order> order;
    uint64_t epoch_seed = 0;
    int64_t first = 0;  // index in the order
    int64_t size = 0, taken = 0, done = 0;
    std::exception_ptr error;
    int64_t error_sample = 0;
  };

  State(std::shared_ptr<const Dataset> data, const LoaderOptions& chosen)
      : dataset(std::move(data)),
        options(chosen),
        samples(dataset->size()),
        sample_shape(dataset->sample_shape()),
        sample_elements(sample_shape.elements()),
        batches(count_batches(samples, options)) {
    const BufferSizes sizes = buffer_sizes(samples, sample_shape, options);
    pool_bytes = sizes.pool;
    memory = map_pages(pool_bytes);
    slots.resize(static_cast<size_t>(options.prefetch_batches + 1));
    std::byte* at = memory.get();
    for (Slot& slot : slots) {
      slot.pixels = reinterpret_cast<float*>(at);
      slot.labels = reinterpret_cast<int64_t*>(at + sizes.pixels.count());
      at += (sizes.pixels + sizes.labels).count();
      free.push_back(&slot);
    }
  }

  // The methods below REQUIRE: mutex is held.
  bool has_work() const {
    if (paused) return false;
    return (!filling.empty() && filling.back()->taken < filling.back()->size) || !free.empty();
  }

  void begin_batch() {
    Slot& slot = *free.back();
    free.pop_back();
    filling.push_back(&slot);
    slot.position = cursor;
    slot.first = cursor.batch * options.batch;
    slot.size = std::min(options.batch, samples - slot.first);
    slot.taken = slot.done = 0;
    slot.error = nullptr;
    slot.error_sample = slot.size;
    try {
      if (!order || order_epoch != cursor.epoch) {
        order.reset();
        order = std::make_shared<const Order>(make_order(samples, options, cursor.epoch));
        order_epoch = cursor.epoch;
      }
      slot.order = order;
      slot.epoch_seed = CounterRandom(options.seed, RandomStream::kEpochSeed,
                                      static_cast<uint64_t>(cursor.epoch))
                            .bits64();
    } catch (...) {  // no memory for the order: the consumer gets the error
      slot.error = std::current_exception();
      slot.taken = slot.done = slot.size;
      ready.notify_all();
    }
    if (++cursor.batch == batches) cursor = {cursor.epoch + 1, 0};
  }

  void release(Slot& slot) {
    slot.order.reset();
    slot.error = nullptr;
    free.push_back(&slot);
    work.notify_all();
  }

  // The life of a thread.
  void run() {
    std::unique_lock lock(mutex);
    while (true) {
      work.wait(lock, [this] { return stop || has_work(); });
      if (stop) return;
      if (filling.empty() || filling.back()->taken == filling.back()->size) begin_batch();
      Slot& slot = *filling.back();
      // Chunks are small enough that threads finish a batch together; the lock costs little
      // compared with a chunk.
      const int64_t share = slot.size / (options.threads == 1 ? 1 : 4 * options.threads);
      const int64_t begin = slot.taken;
      const int64_t end = std::min(slot.size, begin + std::max<int64_t>(1, share));
      if (begin == end) continue;
      slot.taken = end;
      ++active;
      lock.unlock();
      std::exception_ptr error;
      const int64_t failed = read(slot, begin, end, error);
      lock.lock();
      --active;
      if (error && failed < slot.error_sample) {
        slot.error = error;
        slot.error_sample = failed;
      }
      slot.done += end - begin;
      if (slot.done == slot.size || active == 0) ready.notify_all();
    }
  }

  // Runs without the lock, as the chunk belongs to this thread. Returns the index of the sample
  // at which it failed.
  int64_t read(const Slot& slot, int64_t begin, int64_t end, std::exception_ptr& error) const {
    int64_t i = begin;
    try {
      for (; i < end && !cancel.load(std::memory_order_relaxed);
           ++i) {  // relaxed: a hint that guards no data
        const std::span pixels(slot.pixels + i * sample_elements,
                               static_cast<size_t>(sample_elements));
        dataset->read((*slot.order)[static_cast<size_t>(slot.first + i)], slot.epoch_seed,
                      pixels, slot.labels[i]);
      }
    } catch (...) {
      error = std::current_exception();
    }
    return i;
  }

  const std::shared_ptr<const Dataset> dataset;
  const LoaderOptions options;
  const int64_t samples;
  const Shape sample_shape;
  const int64_t sample_elements;
  const int64_t batches;
  Bytes pool_bytes;
  std::shared_ptr<std::byte> memory;     // whole pages, so that a device may pin them
  std::unique_ptr<MemoryRegion> region;  // all of it, on the device that copies from it

  std::atomic<bool> cancel{false};  // set when the current batches are no longer wanted
  std::mutex mutex;                 // guards everything below
  std::condition_variable work, ready;
  std::vector<Slot> slots;
  std::vector<Slot*> free;
  std::deque<Slot*> filling;
  LoaderPosition cursor;  // the batch to begin next
  std::shared_ptr<const Order> order;
  int64_t order_epoch = -1;
  int64_t active = 0;  // chunks being read
  bool paused = false, stop = false;
};

Loader::Loader(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options)
    : dataset_(std::move(dataset)) {
  if (options.batch <= 0 || options.prefetch_batches <= 0 || options.threads <= 0) {
    throw UsageError("batch, prefetch_batches and threads of a loader must be at least 1");
  }
  if (count_batches(dataset_->size(), options) == 0) {
    throw UsageError(std::to_string(dataset_->size()) + " samples are too few for a batch of " +
                     std::to_string(options.batch));
  }
  state_ = std::make_shared<State>(dataset_, options);
  try {
    for (int64_t i = 0; i < options.threads; ++i) {
      threads_.emplace_back([state = state_.get()] { state->run(); });
    }
  } catch (...) {
    shut_down();
    throw;
  }
}

Loader::~Loader() { shut_down(); }

void Loader::shut_down() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stop = true;
    state_->cancel = true;
  }
  state_->work.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Loader::pin(Device& device) {
  State& s = *state_;
  s.region.reset();
  s.region = device.adopt(s.memory, s.pool_bytes);
  s.region->prepare(Bytes(0), s.pool_bytes);
}

std::optional<HostBatch> Loader::next() {
  State& s = *state_;
  if (next_.batch == s.batches) {
    next_ = {next_.epoch + 1, 0};
    return std::nullopt;
  }
  std::unique_lock lock(s.mutex);
  s.ready.wait(lock, [&s] {
    return s.filling.empty() ? s.free.empty()
                             : s.filling.front()->done == s.filling.front()->size;
  });
  if (s.filling.empty()) {
    throw UsageError("all " + std::to_string(s.slots.size()) +
                     " batches of the loader are in use: release one, or prefetch more");
  }
  State::Slot& slot = *s.filling.front();
  if (slot.error) {
    const std::exception_ptr error = slot.error;
    lock.unlock();
    rewind(next_);
    std::rethrow_exception(error);
  }
  s.filling.pop_front();
  slot.order.reset();
  lock.unlock();
  std::shared_ptr<State::Slot> lease;
  try {
    lease = {&slot, [state = state_](State::Slot* held) {
               const std::lock_guard again(state->mutex);
               state->release(*held);
             }};
  } catch (...) {  // no memory for the count: the buffer is freed, the batch is not lost
    rewind(next_);
    throw;
  }
  HostBatch batch;
  batch.position = slot.position;
  batch.size = slot.size;
  batch.shape = {slot.size, s.sample_shape[0], s.sample_shape[1], s.sample_shape[2]};
  batch.pixels = std::shared_ptr<float[]>(lease, slot.pixels);
  batch.labels = std::shared_ptr<int64_t[]>(lease, slot.labels);
  batch.bytes = Bytes(slot.size * (4 * s.sample_elements + 8));
  ++next_.batch;
  return batch;
}

void Loader::seek(LoaderPosition position) {
  if (position.epoch < 0 || position.batch < 0 || position.batch > state_->batches) {
    throw UsageError("there is no batch " + std::to_string(position.batch) + " of epoch " +
                     std::to_string(position.epoch) + ": an epoch has " +
                     std::to_string(state_->batches));
  }
  if (position != next_) rewind(position);
}

void Loader::rewind(LoaderPosition position) {
  State& s = *state_;
  {
    std::unique_lock lock(s.mutex);
    s.paused = true;
    s.cancel = true;
    s.ready.wait(lock, [&s] { return s.active == 0; });
    while (!s.filling.empty()) {
      s.release(*s.filling.back());
      s.filling.pop_back();
    }
    s.cursor = position.batch == s.batches ? LoaderPosition{position.epoch + 1, 0} : position;
    s.cancel = false;
    s.paused = false;
    next_ = position;
  }
  s.work.notify_all();
}

int64_t Loader::batches_per_epoch() const { return state_->batches; }

Bytes Loader::buffer_bytes() const {
  return loader_buffer_bytes(state_->samples, state_->sample_shape, dataset_->scratch_bytes(),
                             state_->options);
}

}  // namespace tidemark
