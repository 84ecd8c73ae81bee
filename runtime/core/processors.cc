#include "runtime/core/processors.h"

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
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
  // On Linux a nice value belongs to the calling thread and the threads that it starts. 10 more
  // give about a ninth of the weight. With less, or under SCHED_IDLE, a plan of some seconds'
  // work would take hours beside compute threads that spin while they wait.
  errno = 0;
  const int now = getpriority(PRIO_PROCESS, 0);
  if (errno == 0) setpriority(PRIO_PROCESS, 0, std::min(now + 10, 19));
}

}  // namespace tidemark
