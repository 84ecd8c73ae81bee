// The checkpoint of a run: what train_resnet and train_bert do about --checkpoint,
// --checkpoint-every, --resume and --lr-steps, and the checks of --save before any work.
//
//   Checkpointing files(flags, true);     // before data are read
//   files.settle(settings, steps, steps_per_epoch);  // before the dry run
//   int64_t step = files.begin(model, optimizer);
//   ... files.after_step(++step, ...) ... files.end(step, ...)
//
// Without --checkpoint all of these do nothing. Threads: the session's issuing thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "examples/common/training_flags.h"
#include "models/checkpoint/file_lock.h"
#include "models/checkpoint/training_state.h"
#include "models/checkpoint/weights.h"

namespace tidemark {

class Checkpointing {
 public:
  // Checks that --save can be written, locks --checkpoint for as long as this lives, and reads
  // what it holds: no run, unless --resume. `with_data`: whether the run reads any; a dry run
  // touches no file. Throws UsageError, DataError.
  Checkpointing(const TrainingFlags& flags, bool with_data);

  // `settings`: everything that a run shares with the one that it goes on from, by the names of
  // flags without dashes; those that both programs have are added. Throws UsageError that names
  // the flag if the run in the checkpoint has another. `steps`: of the whole run;
  // `steps_per_epoch`: 0 if not known.
  void settle(SafetensorsMetadata settings, int64_t steps, int64_t steps_per_epoch);

  // Steps that the schedule of the learning rate spans.
  int64_t schedule_steps() const { return schedule_steps_; }

  // Resumes into the model and its optimizer, or writes the first checkpoint, now, so that a
  // path that cannot be written is known before training. Gives the step to go on with. Throws
  // as load_training_state.
  int64_t begin(Module& model, Optimizer& optimizer);
  // Call once `done` steps have completed.
  void after_step(int64_t done, const Module& model, const Optimizer& optimizer);
  void end(int64_t done, const Module& model, const Optimizer& optimizer);

 private:
  void settle_schedule(int64_t steps);
  void save(int64_t done, const Module& model, const Optimizer& optimizer);

  TrainingFlags flags_;
  std::optional<FileLock> lock_;  // of --checkpoint
  TrainingState found_;           // in the file, of --resume
  SafetensorsMetadata settings_;
  int64_t schedule_steps_ = 0;
  int64_t steps_per_epoch_ = 0;
  int64_t saved_at_ = -1;
};

// A line that says how many tensors --load gave, and which it did not.
void print_loaded(const LoadReport& report, const std::string& path);

}  // namespace tidemark
