#include "runtime/device/cpu/team.h"

#include <omp.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <string>

#include "runtime/core/errors.h"
#include "runtime/core/log.h"
#include "runtime/core/processors.h"

namespace tidemark {
namespace {

int default_threads() {
  if (std::getenv("OMP_NUM_THREADS")) return omp_get_max_threads();
  // With OMP_PROC_BIND this thread may use one processor only; OpenMP knows about the others.
  return within_cpu_quota(std::max(processors_allowed(), omp_get_num_procs()));
}

int usable(int threads) { return std::clamp(threads, 1, omp_get_thread_limit()); }

int team_size() {
  int threads = 0;
#pragma omp parallel
  if (omp_get_thread_num() == 0) threads = omp_get_num_threads();
  return threads;
}

}  // namespace

int compute_threads(int wanted) {
  if (wanted < 0) throw UsageError("the number of threads cannot be negative");
  const int limit = omp_get_thread_limit();
  static std::once_flag logged;
  if (wanted > limit) {
    std::call_once(logged, [&] {
      log().warn("{} threads were requested; OMP_THREAD_LIMIT allows {}", wanted, limit);
    });
  }
  return usable(wanted > 0 ? wanted : default_threads());
}

void use_threads(int threads) {
  omp_set_num_threads(usable(threads));
  omp_set_dynamic(0);
  omp_set_max_active_levels(1);
}

UseThreads::UseThreads(int threads)
    : threads_(usable(threads)),
      threads_before_(omp_get_max_threads()),
      levels_before_(omp_get_max_active_levels()),
      dynamic_before_(omp_get_dynamic() != 0) {
  if (omp_in_parallel() && threads_ > 1) {
    throw UsageError("a kernel for " + std::to_string(threads_) +
                     " threads cannot be used inside an OpenMP parallel region");
  }
  use_threads(threads_);
}

UseThreads::~UseThreads() {
  omp_set_num_threads(threads_before_);
  omp_set_dynamic(dynamic_before_ ? 1 : 0);
  omp_set_max_active_levels(levels_before_);
}

void UseThreads::require_team() const {
  thread_local int seen = 1;  // the team size checked last
  if (seen == threads_) return;
  const int came = team_size();
  if (came != threads_) {
    throw DeviceError("OpenMP started " + std::to_string(came) + " of the " +
                      std::to_string(threads_) + " threads that a kernel needs");
  }
  seen = came;
}

}  // namespace tidemark
