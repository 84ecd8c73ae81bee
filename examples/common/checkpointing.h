// A run's checkpoints: implements --checkpoint, --checkpoint-every, --resume and --lr-steps for
// train_resnet and train_bert, and checks --save before any work.
//
//   Checkpointing files(flags, true);     // before data are read
//   files.settle(settings, steps, steps_per_epoch);  // before the dry run
//   int64_t step = files.begin(model, optimizer);
//   ... files.after_step(++step, ...) ... files.end(step, ...)
//
// Without --checkpoint, these calls do nothing. Threads: the session's issuing thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "examples/common/training_flags.h"
#include "models/checkpoint/file_lock.h"
#include "models/checkpoint/training_state.h"
#include "models/checkpoint/weights.h"

namespace tidemark {

class Checkpointing {
 public:
  // Checks that --save is writable, locks --checkpoint for the lifetime of this object, and
  // reads the checkpoint. Without --resume, the checkpoint must not hold a run. `with_data`:
  // whether the run reads data; a dry run touches no file. Throws UsageError, DataError.
  Checkpointing(const TrainingFlags& flags, bool with_data);

  // `settings`: all settings that a run must share with the run it resumes, by flag names
  // without dashes; settings common to both programs are added. Throws UsageError naming the
  // flag if the checkpoint's run has another value. `steps`: of the whole run;
  // `steps_per_epoch`: 0 if unknown.
  void settle(WeightMetadata settings, int64_t steps, int64_t steps_per_epoch);

  // Adds a text to the checkpoints to come that a run which continues gets from noted(), and
  // need not share. Call after settle().
  void note(const std::string& name, std::string text) { settings_[name] = std::move(text); }
  // The text in the checkpoint that --resume continues; empty: none.
  std::string noted(const std::string& name) const;

  // The algorithms of the run that --resume continues; null: none, or --allow-rounding was not
  // given.
  const std::shared_ptr<const AlgorithmTable>& algorithms() const { return found_.algorithms; }

  // Steps spanned by the learning-rate schedule.
  int64_t schedule_steps() const { return schedule_steps_; }

  // Resumes model and optimizer, or writes the first checkpoint immediately, so that an
  // unwritable path is found before training. Returns the step to continue from. Throws the
  // exceptions of load_training_state.
  int64_t begin(Module& model, Optimizer& optimizer);
  // Call once `done` steps have completed.
  void after_step(int64_t done, const Module& model, const Optimizer& optimizer);
  void end(int64_t done, const Module& model, const Optimizer& optimizer);

 private:
  void settle_schedule(int64_t steps);
  void save(int64_t done, const Module& model, const Optimizer& optimizer);

  TrainingFlags flags_;
  std::optional<FileLock> lock_;  // of --checkpoint
  TrainingState found_;           // read from the file for --resume
  WeightMetadata settings_;
  int64_t schedule_steps_ = 0;
  int64_t steps_per_epoch_ = 0;
  int64_t saved_at_ = -1;
};

// Prints how many tensors --load provided, and which it did not.
void print_loaded(const LoadReport& report, const std::string& path);

}  // namespace tidemark
