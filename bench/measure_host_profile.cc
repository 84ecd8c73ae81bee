// Measures this machine and prints a device profile for it, such as data/profiles/host.json.
//
//   measure_host_profile [NAME [DIRECTORY-FOR-THE-DISK-TEST]] > mine.json
//   train_resnet --device sim:mine.json ...
//
// Takes about ten seconds; run it alone. Each number is the best of many short runs, as slower
// runs were disturbed.
#include <fcntl.h>
#include <omp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <oneapi/dnnl/dnnl.hpp>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bench/run_main.h"
#include "runtime/core/errors.h"
#include "runtime/device/device.h"

namespace tidemark {
namespace {

double seconds_of(const std::function<void()>& run) {
  const auto start = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double best_seconds(int runs, const std::function<void()>& run) {
  run();  // touches pages, wakes threads
  double best = seconds_of(run);
  for (int i = 1; i < runs; ++i) best = std::min(best, seconds_of(run));
  return best;
}

// Runs and times a oneDNN primitive that chooses the layouts of its tensors.
class OneDnn {
 public:
  using Arguments = std::vector<std::pair<int, dnnl::memory::desc>>;

  double best(int runs, const dnnl::primitive& primitive, const Arguments& arguments) {
    std::unordered_map<int, dnnl::memory> memories;
    for (const auto& [id, desc] : arguments) {
      memories[id] = dnnl::memory(desc, engine_);
      std::memset(memories[id].get_data_handle(), 0, desc.get_size());
    }
    return best_seconds(runs, [&] {
      primitive.execute(stream_, memories);
      stream_.wait();
    });
  }
  const dnnl::engine& engine() const { return engine_; }

 private:
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
};

double matmul_flops(dnnl::memory::data_type type) {
  constexpr int64_t kSize = 1024;
  OneDnn dnn;
  const dnnl::memory::desc in({kSize, kSize}, type, dnnl::memory::format_tag::any);
  const dnnl::memory::desc out({kSize, kSize}, dnnl::memory::data_type::f32,
                               dnnl::memory::format_tag::ab);
  const dnnl::matmul::primitive_desc chosen(dnnl::matmul::desc(in, in, out), dnn.engine());
  const double seconds = dnn.best(100, dnnl::matmul(chosen),
                                  {{DNNL_ARG_SRC, chosen.src_desc()},
                                   {DNNL_ARG_WEIGHTS, chosen.weights_desc()},
                                   {DNNL_ARG_DST, chosen.dst_desc()}});
  return 2.0 * kSize * kSize * kSize / seconds;
}

// Four shapes that are typical of ResNet-50's convolutions, forward, batch 8.
double convolution_flops() {
  struct Shape {
    int64_t in, out, kernel, size;
  };
  constexpr std::array<Shape, 4> kShapes{
      {{64, 256, 1, 56}, {128, 128, 3, 28}, {1024, 256, 1, 14}, {512, 512, 3, 7}}};
  constexpr int64_t kBatch = 8;
  OneDnn dnn;
  double flops = 0;
  double seconds = 0;
  for (const Shape& shape : kShapes) {
    constexpr auto kAny = dnnl::memory::format_tag::any;
    constexpr auto kFloat = dnnl::memory::data_type::f32;
    const int64_t pad = shape.kernel / 2;
    const dnnl::convolution_forward::desc desc(
        dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct,
        {{kBatch, shape.in, shape.size, shape.size}, kFloat, kAny},
        {{shape.out, shape.in, shape.kernel, shape.kernel}, kFloat, kAny},
        {{kBatch, shape.out, shape.size, shape.size}, kFloat, kAny}, {1, 1}, {pad, pad},
        {pad, pad});
    const dnnl::convolution_forward::primitive_desc chosen(desc, dnn.engine());
    seconds += dnn.best(100, dnnl::convolution_forward(chosen),
                        {{DNNL_ARG_SRC, chosen.src_desc()},
                         {DNNL_ARG_WEIGHTS, chosen.weights_desc()},
                         {DNNL_ARG_DST, chosen.dst_desc()}});
    flops += 2.0 * kBatch *
             static_cast<double>(shape.in * shape.out * shape.kernel * shape.kernel *
                                 shape.size * shape.size);
  }
  return flops / seconds;
}

// Arrays are processed in pieces, so that neither caches nor other programs decide the result:
// no cache holds a whole array, and other programs leave some pieces undisturbed.
constexpr int64_t kArrayBytes = 256 << 20;
constexpr int64_t kPieceBytes = 16 << 20;

// Bytes per second that `threads` read and write in y = 2 x + y.
double triad_bandwidth(int threads) {
  constexpr int64_t kCount = kArrayBytes / sizeof(float);
  constexpr int64_t kPiece = kPieceBytes / sizeof(float);
  const std::unique_ptr<float[]> x(new float[kCount]);
  const std::unique_ptr<float[]> y(new float[kCount]);
  float* const from = x.get();
  float* const to = y.get();
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t i = 0; i < kCount; ++i) from[i] = to[i] = static_cast<float>(i % 7);
  double best = 1e9;
  for (int run = 0; run < 8; ++run) {
    for (int64_t at = 0; at < kCount; at += kPiece) {
      best = std::min(best, seconds_of([=] {
#pragma omp parallel for simd num_threads(threads) schedule(static)
                        for (int64_t i = at; i < at + kPiece; ++i) to[i] += 2 * from[i];
                      }));
    }
  }
  return 3.0 * kPieceBytes / best;
}

// Measured through the device's own streams, as the tiers use them.
struct Links {
  double offload, reload, both_offload, both_reload;
};

Links link_bandwidth(Device& device) {
  std::vector<std::unique_ptr<MemoryRegion>> regions;
  for (int i = 0; i < 4; ++i) {
    regions.push_back(device.map(MemoryKind::kHost, Bytes(kArrayBytes)));
    std::memset(regions.back()->data(), i, kArrayBytes);
  }
  // The best of a few rounds over the arrays, with copies of `bytes` each.
  auto measure = [&](std::initializer_list<StreamId> streams, int64_t bytes) {
    std::array<double, kStreamCount> best{};
    for (int round = 0; round < 6; ++round) {
      for (int64_t at = 0; at < kArrayBytes; at += bytes) {
        for (StreamId stream : streams) {
          const size_t first = stream == StreamId::kOffload ? 0 : 2;
          device.copy(stream, {regions[first]->data() + at, regions[first + 1]->data() + at,
                               Bytes(bytes), 1});
        }
      }
      device.synchronize_all();
      for (const Completion& completion : device.take_completions()) {
        double& rate = best[static_cast<size_t>(completion.stream)];
        rate = std::max(
            rate, static_cast<double>(bytes) / to_seconds(completion.end - completion.start));
      }
    }
    return best;
  };
  const double offload = measure({StreamId::kOffload}, kPieceBytes)[1];
  const double reload = measure({StreamId::kReload}, kPieceBytes)[2];
  // Whole arrays: a single piece could run while the other stream is idle.
  const auto both = measure({StreamId::kOffload, StreamId::kReload}, kArrayBytes);
  return {offload, reload, both[1], both[2]};
}

struct Disk {
  double write, read;
  std::string how;
};

Disk disk_bandwidth(const std::string& directory) {
  constexpr size_t kPiece = 8 << 20;
  constexpr size_t kSize = 256 << 20;
  std::string path = directory + "/tidemark-profile-XXXXXX";
  const int probe = mkstemp(path.data());
  if (probe < 0) throw DataError(path, std::strerror(errno));
  close(probe);
  // Bypasses the page cache where the file system can; otherwise data is flushed to the disk
  // and dropped from the cache.
  int file = open(path.c_str(), O_RDWR | O_DIRECT);
  const bool direct = file >= 0;
  if (!direct) file = open(path.c_str(), O_RDWR);
  unlink(path.c_str());
  if (file < 0) throw DataError(path, std::strerror(errno));
  const std::unique_ptr<void, decltype(&std::free)> buffer(std::aligned_alloc(4096, kPiece),
                                                           &std::free);
  std::memset(buffer.get(), 1, kPiece);
  auto each_piece = [&](auto&& transfer) {
    for (size_t at = 0; at < kSize; at += kPiece) {
      if (transfer(static_cast<off_t>(at)) != static_cast<ssize_t>(kPiece)) {
        throw DataError(path, static_cast<int64_t>(at), std::strerror(errno));
      }
    }
  };
  Disk disk{0, 0, direct ? "O_DIRECT" : "fdatasync, then dropped from the page cache"};
  disk.write = kSize / best_seconds(2, [&] {
                 each_piece([&](off_t at) { return pwrite(file, buffer.get(), kPiece, at); });
                 fdatasync(file);
               });
  disk.read = kSize / best_seconds(2, [&] {
                posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
                each_piece([&](off_t at) { return pread(file, buffer.get(), kPiece, at); });
              });
  close(file);
  return disk;
}

// The issuing thread's time for one enqueue while the worker is busy.
double enqueue_seconds(Device& device) {
  constexpr int kCount = 2000;  // less than a full queue
  return best_seconds(20,
                      [&] {
                        device.synchronize_all();
                        for (int i = 0; i < kCount; ++i) {
                          device.enqueue(StreamId::kCompute, {[](void*) {}, Nanos(0), 0});
                        }
                      }) /
         kCount;
}

// The time from the end of one stream's work to the start of work on another that waits for it.
double handover_seconds(Device& device) {
  constexpr int kCount = 200;
  return best_seconds(
             10,
             [&] {
               for (int i = 0; i < kCount; ++i) {
                 const StreamId to = i % 2 == 0 ? StreamId::kOffload : StreamId::kCompute;
                 const StreamId from = i % 2 == 0 ? StreamId::kCompute : StreamId::kOffload;
                 device.wait(from, device.enqueue(to, {[](void*) {}, Nanos(0), 0}));
               }
               device.synchronize_all();
             }) /
         kCount;
}

// An empty parallel region: no kernel is faster.
double fork_join_seconds() {
  constexpr int kCount = 1000;
  return best_seconds(10,
                      [] {
                        for (int i = 0; i < kCount; ++i) {
#pragma omp parallel
                          { std::atomic_signal_fence(std::memory_order_seq_cst); }
                        }
                      }) /
         kCount;
}

double rounded(double value) {
  const double digit = std::pow(10, std::floor(std::log10(value)) - 2);
  return std::round(value / digit) * digit;
}

void print_profile(const std::string& name, const std::string& directory) {
  const auto device = make_cpu_device();
  const int threads = omp_get_max_threads();
  const double float32 = matmul_flops(dnnl::memory::data_type::f32);
  const double bfloat16 = matmul_flops(dnnl::memory::data_type::bf16);
  const double convolution = convolution_flops();
  const double bandwidth = triad_bandwidth(threads);
  const Links links = link_bandwidth(*device);
  const Disk disk = disk_bandwidth(directory);

  nlohmann::ordered_json json;
  nlohmann::ordered_json sources;
  auto put = [&](const std::string& key, double value, const std::string& source) {
    if (std::round(value) == value || value > 100) {
      json[key] = static_cast<int64_t>(std::llround(value > 1 ? rounded(value) : value));
    } else {
      json[key] = rounded(value);
    }
    sources[key] = source;
  };
  json["name"] = name;
  json["description"] = std::to_string(threads) + " threads of this machine";
  json["backend"] = "cpu";
  const std::string by = "measured by bench/measure_host_profile: ";
  json["memory_bytes"] = device->profile().memory.count();
  sources["memory_bytes"] = by + "physical memory";
  put("float32_flops", float32, by + "oneDNN matmul, float32, 1024 x 1024 x 1024");
  put("bfloat16_flops", bfloat16, by + "oneDNN matmul, bfloat16 inputs, 1024 x 1024 x 1024");
  put("compute_efficiency", std::min(1.0, convolution / float32),
      by + "four of ResNet-50's convolutions, forward, batch 8, over float32_flops");
  put("memory_bandwidth", bandwidth,
      by + "y = 2 x + y over 256 MiB arrays in pieces of 16 MiB, all threads");
  json["memory_efficiency"] = 1;
  sources["memory_efficiency"] = by + "memory_bandwidth is that of an elementwise kernel";
  put("offload_bandwidth", links.offload, by + "copies of 16 MiB on the offload stream");
  put("reload_bandwidth", links.reload, by + "copies of 16 MiB on the reload stream");
  put("duplex_offload_bandwidth", std::min(links.both_offload, links.offload),
      by + "copies of 256 MiB, both streams at once");
  put("duplex_reload_bandwidth", std::min(links.both_reload, links.reload),
      by + "copies of 256 MiB, both streams at once");
  put("pin_bandwidth", 0, "nothing is pinned on a CPU");
  put("disk_write_bandwidth", disk.write, by + "256 MiB in pieces of 8 MiB, " + disk.how);
  put("disk_read_bandwidth", disk.read, by + "256 MiB in pieces of 8 MiB, " + disk.how);
  constexpr double kDispatch = 2000;
  put("launch_cost_ns", std::ceil(enqueue_seconds(*device) * 1e9) + kDispatch,
      by + "enqueueing on a busy compute stream; plus 2 us of the runtime's own work per "
           "operator, a modelling constant");
  put("transfer_latency_ns", std::ceil(handover_seconds(*device) * 1e9),
      by + "from one stream's work to another's that waits for it");
  put("kernel_floor_ns", std::ceil(fork_join_seconds() * 1e9),
      by + "an empty OpenMP parallel region");
  json["sources"] = sources;
  const std::string text = json.dump(2);
  parse_profile(text, "the profile");
  std::cout << text << "\n";
}

}  // namespace
}  // namespace tidemark

int main(int argc, char** argv) {
  if (const auto code = tidemark::explain_usage(
          argc, argv, argc > 3 || (argc > 1 && argv[1][0] == '-'),
          "measure_host_profile [NAME [FOLDER_ON_THE_DISK]] > mine.json\n\nMeasures this "
          "machine: a device profile for --device sim:mine.json.")) {
    return *code;
  }
  try {
    tidemark::print_profile(argc > 1 ? argv[1] : "host", argc > 2 ? argv[2] : "/var/tmp");
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 2;
  }
  return 0;
}
