// What kernels report, on the issuing thread, to the CUDA device that runs them: how many
// commands they give to CUDA, whose queues are finite, and which kernels they use. CUDA loads a
// kernel's code at its first use, and may wait for all streams to do so.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_set>

namespace tidemark {

struct LaunchReport {
  int64_t launches = 0;
  std::unordered_set<const void*> used;  // kernels
  // Called before the first use of a kernel. If it throws, the kernel is not used.
  std::function<void()> before_loading;
};
inline thread_local LaunchReport* launch_report = nullptr;

// While it lives, kernels on this thread report to `report`.
class Reporting {
 public:
  explicit Reporting(LaunchReport& report) { launch_report = &report; }
  ~Reporting() { launch_report = nullptr; }
  Reporting(const Reporting&) = delete;
  Reporting& operator=(const Reporting&) = delete;
};

// Call with every launch, or the most launches of a library's call.
inline void count_launches(int64_t n) {
  if (launch_report) launch_report->launches += n;
}

// Call before a kernel's launch and before any other call of CUDA with the kernel.
inline void use_kernel(const void* kernel) {
  if (!launch_report || launch_report->used.contains(kernel)) return;
  launch_report->before_loading();
  launch_report->used.insert(kernel);
}

}  // namespace tidemark
