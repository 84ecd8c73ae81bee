// The parsed flags that every training program has.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/core/dtype.h"
#include "runtime/core/units.h"
#include "runtime/schedule/schedule_json.h"
#include "runtime/session/session.h"

namespace tidemark {

// Bytes, or a fraction of the memory of the unmanaged run.
struct Budget {
  std::optional<Bytes> bytes;
  double share = 0;  // 0.5 for "50%"; used if there are no bytes

  // Rounded down to whole blocks.
  Bytes resolve(Bytes unmanaged_peak) const;
};
// "50%", "33.3%", or as parse_bytes. Throws UsageError.
Budget parse_budget(std::string_view text);

// The memory that the whole process may take: `bytes`, or, if none, the free memory.
struct MemoryAllowance {
  std::optional<Bytes> bytes;
};
// "auto", or as parse_bytes. Throws UsageError.
MemoryAllowance parse_memory(std::string_view text);

// The base of each program's own flags.
struct RunFlags {
  std::string model;
  std::string data;
  int64_t batch = 0;
  int64_t steps = 0;              // 0: determined by epochs
  int64_t epochs = 0;             // 0: the data's default
  DType dtype = DType::kFloat32;  // of activations, and of weights as forward uses them

  std::string optimizer;
  std::optional<double> learning_rate;  // none: the optimizer's default
  std::string schedule = "constant";    // of the learning rate
  double momentum = 0.9;
  double weight_decay = 0;
  bool decays_all = true;  // false: weight decay is for matrices alone

  std::string device = "cpu";
  bool tf32 = true;
  // Calls may use algorithms that round differently, chosen before the first step.
  bool allow_rounding = false;
  std::string profile;  // used by a dry run for "cuda"; empty: the GPU's own
  int threads = 0;
  std::optional<MemoryAllowance> memory;
  std::optional<Budget> budget;
  std::optional<Bytes> host_limit;  // none: the device decides (memory_limits.h)
  std::optional<Bytes> disk_limit;  // none: the device decides (run.h)
  std::string disk_directory;
  std::string policy = "tide";
  DeltaOptions delta;
  bool overlap = true;
  // Run repeating steps by schedules; none: the policy decides (tide: yes).
  std::optional<bool> plan{};
  // The schedule to run by, and the file it came from; null: none.
  std::shared_ptr<const SavedSchedule> saved_schedule;
  std::string saved_schedule_file;
  uint64_t seed = 0;

  std::shared_ptr<const CostTable> costs;  // to use; null: none

  bool dry_run = false;
  std::string json;  // files; empty: none
  std::string trace;
  std::string tensorboard;  // a folder
  std::string save_costs;
  std::string save_schedule;

  bool on_simulator() const { return device.starts_with("sim:"); }
  bool on_cuda() const { return device.starts_with("cuda"); }
};

inline constexpr int kUsageExitCode = 2;

}  // namespace tidemark
