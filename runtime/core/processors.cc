#include "runtime/core/processors.h"

#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <thread>

#include "runtime/core/process_limits.h"

namespace tidemark {

int processors_allowed() {
  cpu_set_t allowed;
  // The call fails if the machine has more than CPU_SETSIZE processors.
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) return CPU_COUNT(&allowed);
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

int within_cpu_quota(int processors, const std::filesystem::path& root) {
  int64_t kept_busy = processors;
  for (const ControlGroup& group : control_groups("cpu", root)) {
    int64_t quota = 0, period = 0;  // no quota: "max" in version 2, -1 in version 1
    if (!(std::ifstream(group.folder / "cpu.max") >> quota >> period)) {
      quota = read_number(group.folder / "cpu.cfs_quota_us").value_or(0);
      period = read_number(group.folder / "cpu.cfs_period_us").value_or(0);
    }
    if (quota <= 0 || period <= 0) continue;
    kept_busy = std::min(kept_busy, (quota + period - 1) / period);
  }
  return std::max(1, static_cast<int>(kept_busy));
}

void let_others_go_first() noexcept {
  // On Linux this affects only the calling thread and the threads that it starts. A low
  // priority would not suffice: a running thread keeps its processor for some milliseconds
  // after another is woken, and all threads of an operator would wait for the woken one. A
  // SCHED_IDLE thread yields at once.
  const sched_param none{};
  sched_setscheduler(0, SCHED_IDLE, &none);
}

}  // namespace tidemark
