// Backward sorts the positions by id (a radix sort that keeps their order), then sums runs of
// kRun sorted positions. If all positions of an id are in one run, that run finishes the id.
// Otherwise runs leave partial sums, which are added in order. No float is added atomically.
#include <algorithm>

#include "ops/embedding/embedding.h"
#include "ops/kernels/any_float.h"
#include "ops/kernels/columns_cuda.cuh"
#include "ops/kernels/launch_cuda.cuh"
#include "ops/register_cuda.h"
#include "ops/registry/kernels.h"

namespace tidemark {
namespace {

constexpr int kDigits = 256;     // values of a sorted byte; a block has a thread for each
constexpr int64_t kTile = 1024;  // positions that a block sorts
constexpr int64_t kRun = 128;    // positions that are summed in float
constexpr int kThreads = 128;    // of a block that sums; one loads each position of a run
constexpr int kBatch = 8;        // rows whose loads are in flight at once
static_assert(kThreads >= kRun);

// `lanes` threads for each position, side by side over vectors of kWidth columns.
template <int kWidth, class Id>
__global__ void __launch_bounds__(kLaunchThreads)
    forward_kernel(int64_t rows, int64_t width, int64_t count, unsigned lanes, FloatInput table,
                   const Id* ids, FloatOutput y) {
  const int64_t position = int64_t{blockIdx.x} * (kLaunchThreads / lanes) + threadIdx.x / lanes;
  if (position >= count) return;
  const int64_t id = ids[position];
  const bool there = id >= 0 && id < rows;
  for (int64_t c = threadIdx.x % lanes * kWidth; c < width; c += lanes * kWidth) {
    FloatPack<kWidth> pack;
    if (there) {
      pack = load_pack<kWidth>(table + (id * width + c));
    } else {
#pragma unroll
      for (int i = 0; i < kWidth; ++i) pack.v[i] = NAN;
    }
    store_pack<kWidth>(y + (position * width + c), pack);
  }
}

// Ids as the sort sees them. Ids without a gradient come last, as `rows`.
template <class Id>
struct Keys {
  const Id* ids;
  int64_t rows, padding, count;

  __device__ int64_t operator()(int64_t position) const {
    const int64_t id = ids[position];
    return id >= 0 && id < rows && id != padding ? id : rows;
  }
};

// The order so far. Before the first pass it is the positions themselves.
__device__ int32_t position_at(const int32_t* order, int64_t i) {
  return order ? order[i] : static_cast<int32_t>(i);
}

// Loads the digits of a tile into shared memory; returns how many there are.
template <class Id>
__device__ int load_digits(const Keys<Id>& keys, int shift, const int32_t* order,
                           uint8_t* digits, int32_t* positions) {
  const int64_t first = blockIdx.x * kTile;
  const int length = static_cast<int>(min(kTile, keys.count - first));
  for (int i = static_cast<int>(threadIdx.x); i < length; i += kDigits) {
    positions[i] = position_at(order, first + i);
    digits[i] = static_cast<uint8_t>(keys(positions[i]) >> shift);
  }
  __syncthreads();
  return length;
}

// counts (digit, tile)
template <class Id>
__global__ void __launch_bounds__(kDigits) count_kernel(Keys<Id> keys, int shift, int64_t tiles,
                                                        const int32_t* order, int32_t* counts) {
  __shared__ uint8_t digits[kTile];
  __shared__ int32_t positions[kTile];
  const int length = load_digits(keys, shift, order, digits, positions);
  int32_t mine = 0;
  for (int i = 0; i < length; ++i) mine += digits[i] == threadIdx.x;
  counts[threadIdx.x * tiles + blockIdx.x] = mine;
}

// One block turns counts into the number of positions before each.
__global__ void __launch_bounds__(kDigits) scan_kernel(int64_t tiles, int32_t* counts) {
  __shared__ int32_t sums[kDigits];
  int32_t* mine = counts + threadIdx.x * tiles;
  int32_t sum = 0;
  for (int64_t i = 0; i < tiles; ++i) sum += mine[i];
  sums[threadIdx.x] = sum;
  __syncthreads();
  int32_t before = 0;
  for (unsigned digit = 0; digit < threadIdx.x; ++digit) before += sums[digit];
  for (int64_t i = 0; i < tiles; ++i) {
    const int32_t count = mine[i];
    mine[i] = before;
    before += count;
  }
}

// Each thread places the positions of one digit, in their order.
template <class Id>
__global__ void __launch_bounds__(kDigits)
    place_kernel(Keys<Id> keys, int shift, int64_t tiles, const int32_t* order,
                 const int32_t* counts, int32_t* placed) {
  __shared__ uint8_t digits[kTile];
  __shared__ int32_t positions[kTile];
  const int length = load_digits(keys, shift, order, digits, positions);
  int32_t at = counts[threadIdx.x * tiles + blockIdx.x];
  for (int i = 0; i < length; ++i) {
    if (digits[i] == threadIdx.x) placed[at++] = positions[i];
  }
}

// What a block needs of its run, in shared memory.
struct SharedRun {
  int64_t ids[kRun];
  int32_t positions[kRun];
};

// Sums `length` rows of gy, from `column` on. As rows are added in order, they are loaded in
// batches: otherwise each load would wait for the addition before it.
template <int kWidth, class T>
__device__ void sum_run(const SharedRun& run, int length, int64_t before, int64_t behind,
                        int64_t width, int64_t column, const T* gy, T* dx, float* partial) {
  ColumnTiles::Place rows{};
  rows.end_row = length;
  rows.row_step = 1;
  FloatPack<kWidth> sum{};
  const auto load = [&](int64_t i) {
    return load_pack<kWidth>(gy + (run.positions[i] * width + column));
  };
  for_rows<kBatch>(rows, load, [&](int64_t i, const FloatPack<kWidth>& pack) {
#pragma unroll
    for (int k = 0; k < kWidth; ++k) sum.v[k] += pack.v[k];
    const int64_t id = run.ids[i];
    if (i + 1 < length && run.ids[i + 1] == id) return;
    if (id == behind || id == before) {  // ids are sorted, so `behind` is at the run's end
      store_pack<kWidth>(partial + ((id == behind) * width + column), sum);
    } else {
      store_pack<kWidth>(dx + (id * width + column), sum);
    }
    sum = {};
  });
}

// Block (run, columns). partial (runs, 2, width): sums of the id that continues from the
// previous run, and of the id that continues in the next one.
template <int kWidth, class Id>
__global__ void __launch_bounds__(kThreads)
    sum_kernel(Keys<Id> keys, int64_t width, int64_t column_blocks, const int32_t* order,
               FloatInput gy, FloatOutput dx, float* partial) {
  __shared__ SharedRun shared;
  const int64_t run = blockIdx.x / column_blocks;
  const int64_t first = run * kRun, end = min(first + kRun, keys.count);
  if (first + threadIdx.x < end) {
    const int32_t position = order[first + threadIdx.x];
    shared.positions[threadIdx.x] = position;
    shared.ids[threadIdx.x] = keys(position);
  }
  const int64_t before = first > 0 ? keys(order[first - 1]) : -1;
  const int64_t behind = end < keys.count ? keys(order[end]) : -1;
  __syncthreads();
  const int64_t column = (blockIdx.x % column_blocks * kThreads + threadIdx.x) * kWidth;
  if (column >= width) return;
  int length = static_cast<int>(end - first);
  while (length > 0 && shared.ids[length - 1] == keys.rows) --length;
  float* sums = partial + 2 * run * width;
  if (gy.bfloat16) {
    sum_run<kWidth>(shared, length, before, behind, width, column,
                    static_cast<const BFloat16*>(gy.data), static_cast<BFloat16*>(dx.data),
                    sums);
  } else {
    sum_run<kWidth>(shared, length, before, behind, width, column,
                    static_cast<const float*>(gy.data), static_cast<float*>(dx.data), sums);
  }
}

// Block (run, columns). Finishes the id that begins in this run and continues behind it.
template <class Id>
__global__ void __launch_bounds__(kThreads)
    finish_kernel(Keys<Id> keys, int64_t width, int64_t column_blocks, const int32_t* order,
                  FloatOutput dx, const float* partial) {
  const int64_t run = blockIdx.x / column_blocks;
  const int64_t column = blockIdx.x % column_blocks * kThreads + threadIdx.x;
  const int64_t first = run * kRun, end = first + kRun;
  if (column >= width || end >= keys.count) return;
  const int64_t id = keys(order[end - 1]);
  if (id >= keys.rows || keys(order[end]) != id) return;
  // The run before has the same id at its end, so the id began there.
  if (first > 0 && keys(order[first - 1]) == id) return;
  double total = partial[(2 * run + 1) * width + column];
  for (int64_t next = run + 1; next * kRun < keys.count; ++next) {
    if (keys(order[next * kRun]) != id) break;
    const int64_t next_end = (next + 1) * kRun;
    const bool goes_on =
        next_end < keys.count && keys(order[next_end - 1]) == id && keys(order[next_end]) == id;
    total += partial[(2 * next + goes_on) * width + column];
    if (!goes_on) break;
  }
  dx.set(id * width + column, static_cast<float>(total));
}

template <class Id>
PreparedKernel prepare_forward(const OpQuery& query) {
  const int64_t rows = query.inputs[0].shape[0], width = query.inputs[0].shape[1];
  const int64_t count = query.inputs[1].shape.elements();
  const bool wide = width % 4 == 0 && vectors_fit(query);
  const int64_t vectors = wide ? width / 4 : width;
  unsigned lanes = 1;  // a power of two, at most a block's threads
  while (lanes < kLaunchThreads && lanes < vectors) lanes *= 2;
  const int64_t threads = width > 0 ? count * lanes : 0;
  return {Bytes(0), [=](const KernelArgs& args) {
            launch(args, threads, wide ? forward_kernel<4, Id> : forward_kernel<1, Id>, rows,
                   width, count, lanes, float_input(args, 0), args.in<Id>(1),
                   float_output(args, 0));
          }};
}

template <class Id>
PreparedKernel prepare_backward(const OpQuery& query) {
  const auto attrs = query.attr<EmbeddingGradAttrs>();
  const int64_t width = query.inputs[0].shape.back();
  const int64_t count = query.inputs[1].shape.elements();
  const int64_t tiles = (count + kTile - 1) / kTile, runs = (count + kRun - 1) / kRun;
  const bool wide = width % 4 == 0 && vectors_fit(query);
  const int64_t finish_blocks = (width + kThreads - 1) / kThreads;
  const int64_t sum_blocks = wide ? (width / 4 + kThreads - 1) / kThreads : finish_blocks;
  const Bytes sum_bytes(2 * runs * width * 4), order_bytes(count * 4);
  return {sum_bytes + 2 * order_bytes + Bytes(tiles * kDigits * 4),
          [=, bytes = query.outputs[0].bytes()](const KernelArgs& args) {
            const FloatOutput dx = float_output(args, 0);
            launch_clear(args, dx.data, bytes);
            if (count == 0 || width == 0) return;
            float* partial = reinterpret_cast<float*>(args.workspace);
            int32_t* from = reinterpret_cast<int32_t*>(args.workspace + sum_bytes.count());
            int32_t* to = from + count;
            int32_t* counts = to + count;
            const Keys<Id> keys{args.in<Id>(1), attrs.rows, attrs.padding_idx, count};
            const int32_t* order = nullptr;
            for (int shift = 0; shift == 0 || attrs.rows >> shift > 0; shift += 8) {
              launch_blocks(args, tiles, kDigits, count_kernel<Id>, keys, shift, tiles, order,
                            counts);
              launch_blocks(args, 1, kDigits, scan_kernel, tiles, counts);
              launch_blocks(args, tiles, kDigits, place_kernel<Id>, keys, shift, tiles, order,
                            static_cast<const int32_t*>(counts), to);
              order = to;
              std::swap(from, to);
            }
            launch_blocks(args, runs * sum_blocks, kThreads,
                          wide ? sum_kernel<4, Id> : sum_kernel<1, Id>, keys, width, sum_blocks,
                          order, float_input(args, 0), dx, partial);
            launch_blocks(args, runs * finish_blocks, kThreads, finish_kernel<Id>, keys, width,
                          finish_blocks, order, dx, static_cast<const float*>(partial));
          }};
}

}  // namespace

void register_embedding_cuda() {
  set_kernel(kEmbedding, Backend::kCuda, [](const OpQuery& query) {
    return query.inputs[1].dtype == DType::kInt64 ? prepare_forward<int64_t>(query)
                                                  : prepare_forward<int32_t>(query);
  });
  set_kernel(kEmbeddingGrad, Backend::kCuda, [](const OpQuery& query) {
    return query.inputs[1].dtype == DType::kInt64 ? prepare_backward<int64_t>(query)
                                                  : prepare_backward<int32_t>(query);
  });
}

}  // namespace tidemark
