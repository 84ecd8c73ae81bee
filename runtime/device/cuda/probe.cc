#include "runtime/device/cuda/probe.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>

#include "runtime/core/errors.h"
#include "runtime/device/cuda/stream_queue.h"
#include "runtime/device/pages.h"

namespace tidemark {
namespace {

constexpr int kRuns = 3;

class DeviceBuffer {
 public:
  DeviceBuffer(CudaDriver& driver, size_t bytes) : driver_(driver) {
    check_driver(driver_, driver_.allocate(DriverMemory::kDevice, &address_, bytes),
                 "cudaMalloc for the probe");
  }
  ~DeviceBuffer() { (void)driver_.free(DriverMemory::kDevice, address_); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  void* get() const { return address_; }

 private:
  CudaDriver& driver_;
  void* address_ = nullptr;
};

class HostBuffer {
 public:
  HostBuffer(CudaDriver& driver, size_t bytes)
      : driver_(driver),
        pages_(map_pages(Bytes(static_cast<int64_t>(bytes)), " of host memory for the probe")) {
    std::memset(get(), 1, bytes);
    const auto start = std::chrono::steady_clock::now();
    const DriverStatus status = driver_.pin(get(), bytes);
    const auto taken = std::chrono::steady_clock::now() - start;
    check_driver(driver_, status, "cudaHostRegister for the probe");
    pin_seconds_ = std::max(std::chrono::duration<double>(taken).count(), 1e-9);
  }
  ~HostBuffer() { (void)driver_.unpin(get()); }
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;
  void* get() const { return pages_.get(); }
  double pin_seconds() const { return pin_seconds_; }

 private:
  CudaDriver& driver_;
  const std::shared_ptr<std::byte> pages_;
  double pin_seconds_ = 0;
};

// A stream with an event at each end of a run of copies.
class Lane {
 public:
  explicit Lane(CudaDriver& driver) : driver_(driver) {
    try {
      check_driver(driver_, driver_.create_stream(&stream_), "cudaStreamCreateWithFlags");
      for (DriverEvent* event : {&start_, &end_}) {
        check_driver(driver_, driver_.create_event(event, /*timed=*/true), "cudaEventCreate");
      }
    } catch (...) {
      give_back();
      throw;
    }
  }
  ~Lane() {
    (void)driver_.synchronize_stream(stream_);
    give_back();
  }
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  void issue(void* to, const void* from, size_t bytes, int copies = 1) {
    check_driver(driver_, driver_.record(start_, stream_), "cudaEventRecord");
    for (int i = 0; i < copies; ++i) {
      check_driver(driver_, driver_.copy(to, from, bytes, stream_), "cudaMemcpyAsync");
    }
    check_driver(driver_, driver_.record(end_, stream_), "cudaEventRecord");
  }
  double seconds() {
    check_driver(driver_, driver_.synchronize_event(end_), "cudaEventSynchronize");
    float ms = 0;
    check_driver(driver_, driver_.elapsed_ms(&ms, start_, end_), "cudaEventElapsedTime");
    return std::max(static_cast<double>(ms) * 1e-3, 1e-9);
  }

 private:
  void give_back() {
    for (DriverEvent event : {start_, end_}) {
      if (event) (void)driver_.destroy_event(event);
    }
    if (stream_) (void)driver_.destroy_stream(stream_);
  }

  CudaDriver& driver_;
  DriverStream stream_ = nullptr;
  DriverEvent start_ = nullptr;
  DriverEvent end_ = nullptr;
};

}  // namespace

LinkProbe probe_links(CudaDriver& driver, Bytes bytes) {
  TIDEMARK_CHECK(bytes > Bytes(0), "a probe copies at least one byte");
  const auto size = static_cast<size_t>(bytes.count());
  check_driver(driver, driver.use(), "cudaSetDevice");
  const DeviceBuffer device_out(driver, size);
  const DeviceBuffer device_in(driver, size);
  const HostBuffer host_out(driver, size);
  const HostBuffer host_in(driver, size);
  Lane out(driver);
  Lane in(driver);

  LinkProbe found;
  found.pin_bandwidth =
      static_cast<double>(size) / std::min(host_out.pin_seconds(), host_in.pin_seconds());
  double latency = 1;
  for (int run = 0; run < kRuns; ++run) {
    out.issue(host_out.get(), device_out.get(), 16);
    latency = std::min(latency, out.seconds());
    out.issue(host_out.get(), device_out.get(), size);
    const double out_alone = static_cast<double>(size) / out.seconds();
    in.issue(device_in.get(), host_in.get(), size);
    const double in_alone = static_cast<double>(size) / in.seconds();
    // Two copies each way, so that most of each run overlaps the other.
    out.issue(host_out.get(), device_out.get(), size, 2);
    in.issue(device_in.get(), host_in.get(), size, 2);
    const double out_beside = 2 * static_cast<double>(size) / out.seconds();
    const double in_beside = 2 * static_cast<double>(size) / in.seconds();
    found.offload_bandwidth = std::max(found.offload_bandwidth, out_alone);
    found.reload_bandwidth = std::max(found.reload_bandwidth, in_alone);
    found.duplex_offload_bandwidth = std::max(found.duplex_offload_bandwidth, out_beside);
    found.duplex_reload_bandwidth = std::max(found.duplex_reload_bandwidth, in_beside);
  }
  found.transfer_latency = Nanos(static_cast<int64_t>(latency * 1e9));
  return found;
}

}  // namespace tidemark
