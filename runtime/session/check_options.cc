#include <algorithm>
#include <string>
#include <thread>

#include "runtime/core/errors.h"
#include "runtime/policy/filters/filter.h"
#include "runtime/policy/registry.h"
#include "runtime/session/session.h"

namespace tidemark {
namespace {

// More than any machine has, and small enough for sums of sizes.
constexpr Bytes kMaxBytes{int64_t{1} << 60};
constexpr size_t kMaxEvents = size_t{1} << 26;
constexpr int kMaxThreads = 1024;

[[noreturn]] void refuse(const std::string& field, const std::string& what) {
  throw UsageError("[session] " + field + ": " + what);
}

void check_bytes(const std::string& field, Bytes bytes, Bytes least) {
  if (bytes >= least && bytes <= kMaxBytes) return;
  refuse(field, std::to_string(bytes.count()) + " bytes; must be from " +
                    std::to_string(least.count()) + " to " + format_bytes(kMaxBytes));
}

// Refuses a name that `find` does not know.
template <class Find>
void check_name(const std::string& field, const Find& find, const std::string& name) {
  try {
    find(name);
  } catch (const UsageError& error) {
    refuse(field, error.what());
  }
}

}  // namespace

void check_options(const SessionOptions& options) {
  const int threads =
      std::max(kMaxThreads, static_cast<int>(std::thread::hardware_concurrency()));
  if (options.threads < 0 || options.threads > threads) {
    refuse("threads", std::to_string(options.threads) + "; must be from 1 to " +
                          std::to_string(threads) + ", or 0 for the default");
  }
  if (options.budget) check_bytes("budget", *options.budget, Bytes(1));
  if (options.unmanaged_peak) check_bytes("unmanaged_peak", *options.unmanaged_peak, Bytes(0));
  check_bytes("host_limit", options.host_limit, Bytes(0));
  check_bytes("disk_limit", options.disk_limit, Bytes(0));
  if (options.event_capacity == 0 || options.event_capacity > kMaxEvents) {
    refuse("event_capacity", std::to_string(options.event_capacity) + "; must be from 1 to " +
                                 std::to_string(kMaxEvents));
  }
  if (options.policy != "none") check_name("policy", find_policy, options.policy);
  check_name("fallback_policy", find_policy, options.fallback_policy);
  const DeltaOptions& delta = options.delta;
  if (!delta.filter.empty()) check_name("delta.filter", find_filter, delta.filter);
  changed_repairs({}, delta.repairs);
  // Written so that NaN is refused.
  if (!(delta.early_start >= 0 && delta.early_start <= 1)) {
    refuse("delta.early_start", std::to_string(delta.early_start) +
                                    "; must be a share of the budget, from 0 (off) to 1");
  }
  if (delta.prefetch < 0) {
    refuse("delta.prefetch", std::to_string(delta.prefetch) + "; must not be negative");
  }
}

}  // namespace tidemark
