#include "examples/common/training_flags.h"

#include <spdlog/fmt/fmt.h>

#include "examples/common/flag_groups.h"
#include "runtime/core/errors.h"

namespace tidemark {

void add_step_flags(CLI::App& app, TrainingFlags& flags) {
  app.option_defaults()->group("Optimizer");
  app.add_option("--lr-steps", flags.schedule_steps,
                 "Steps that --lr-schedule spans, for a run that will be extended later "
                 "[all steps of the run]")
      ->check(CLI::Range(1, 1 << 30));
  app.add_option("--clip", flags.clip,
                 "Clip the norm of all gradients together to at most this; 0: no clipping")
      ->check(finite_number())
      ->check(CLI::NonNegativeNumber);
  app.add_option("--accumulate", flags.accumulate,
                 "Compute each step's gradients in this many micro-batches, one after another: "
                 "--batch 64 --accumulate 4 needs the memory of a batch of 16. The loss is the "
                 "mean over the whole batch; batch norm sees one micro-batch at a time")
      ->check(CLI::Range(1, 1 << 20))
      ->group("What to train");
}

void add_file_flags(CLI::App& app, TrainingFlags& flags, const std::string& load,
                    const std::string& about_load, const std::string& about_save) {
  app.option_defaults()->group("Weights and checkpoints");
  const auto add = [&](const std::string& name, std::string& path, const std::string& about) {
    return app.add_option(name, path, about)->type_name("FILE");
  };
  add(load, flags.load, about_load);
  add("--save", flags.save, about_save);
  app.add_flag(
      "--evaluate", flags.evaluate,
      "Do not train: print accuracy and loss of the weights in --load on the test data");
  add_checkpoint_flags(app, flags);
}

void add_checkpoint_flags(CLI::App& app, TrainingFlags& flags) {
  CLI::Option* checkpoint =
      app.add_option(
             "--checkpoint", flags.checkpoint,
             "Save the state of the run to FILE every --checkpoint-every steps and at the end; "
             "without --resume, a run that FILE holds is not overwritten")
          ->type_name("FILE");
  app.add_option("--checkpoint-every", flags.checkpoint_every, "Steps between checkpoints")
      ->check(CLI::Range(1, 1 << 30));
  app.add_flag("--resume", flags.resume,
               "Continue the run in --checkpoint, with the same bits as a run that was never "
               "stopped. "
               "--steps counts from the beginning")
      ->needs(checkpoint);
}

void check(const TrainingFlags& flags) {
  if (flags.keeps_files() && flags.on_simulator()) {
    throw UsageError("--load, --save and --checkpoint: a simulated device has no values");
  }
  if (flags.batch % flags.accumulate != 0) {
    throw UsageError(
        fmt::format("--accumulate: a batch of {} cannot be cut into {} equal micro-batches",
                    flags.batch, flags.accumulate));
  }
  if (flags.evaluate && !flags.checkpoint.empty()) {
    throw UsageError(
        "--evaluate does not train, so there is nothing to --checkpoint; give the weights to "
        "evaluate with --load");
  }
  if (flags.evaluate && (flags.steps > 0 || flags.epochs > 0)) {
    throw UsageError(
        "--evaluate does not train, and uses all of the test data: leave out --steps "
        "and --epochs");
  }
  if (flags.evaluate && flags.load.empty() && !flags.dry_run && !flags.on_simulator()) {
    throw UsageError("--evaluate needs --load: the weights to evaluate");
  }
  if (flags.resume && !flags.load.empty()) {
    throw UsageError("--resume continues with the weights in --checkpoint; leave out --load");
  }
}

}  // namespace tidemark
