// Command-line flags that the training programs share. Include this only in files that parse
// flags: it includes all of CLI11.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "examples/common/flags.h"
#include "examples/common/training_flags.h"

namespace tidemark {

// Use for every floating-point flag: CLI11's own ranges accept NaN.
CLI::Validator finite_number();
// Use for every unsigned flag: CLI11 turns negative numbers into large ones.
CLI::Validator whole_number();

// The program-specific parts of the help for shared flags.
struct OptimizerHelp {
  std::string rate;                    // of --lr
  std::vector<std::string> schedules;  // that --lr-schedule takes
  std::string schedule;
  std::string seed;
  std::string decay = "Weight decay";  // of --weight-decay
};

// Groups of flags in the help, in the program's order. Each function begins its group, but
// add_length_flags() and add_dtype_flag(), which add to the one that was begun last.
void add_length_flags(CLI::App& app, RunFlags& flags, const std::string& batch,
                      const std::string& epochs);
void add_dtype_flag(CLI::App& app, RunFlags& flags);
// A flag that takes float32 or bf16; adds to the group that was begun last.
void add_type_flag(CLI::App& app, const std::string& name, DType& type,
                   const std::string& about);
void add_memory_flags(CLI::App& app, RunFlags& flags);
void add_optimizer_flags(CLI::App& app, RunFlags& flags, const OptimizerHelp& help);
void add_machine_flags(CLI::App& app, RunFlags& flags);

// --lr-steps, --clip, --accumulate.
void add_step_flags(CLI::App& app, TrainingFlags& flags);
// --checkpoint, --checkpoint-every, --resume; adds to the group that was begun last.
void add_checkpoint_flags(CLI::App& app, TrainingFlags& flags);
// --load, --save, --evaluate and the flags for checkpoints. `load`: the name of the --load
// flag; `about_load`: its help.
void add_file_flags(CLI::App& app, TrainingFlags& flags, const std::string& load,
                    const std::string& about_load, const std::string& about_save);

// All flags of train_resnet and of train_bert, for other programs that train their networks.
struct ResNetFlags;
struct BertFlags;
void add_flags(CLI::App& app, ResNetFlags& flags);
void add_flags(CLI::App& app, BertFlags& flags);

// The last paragraph of their help.
inline constexpr char kTrainingExitCodes[] = R"(
Exit codes: 0 done; 1 failed, or standard output could not be written; 2 usage, bad input,
or a file that cannot be written; 3 the budget is infeasible, or memory ran out; 130 interrupted
(Ctrl-C, SIGTERM or SIGHUP), after finishing the step.)";

// The value of --model, read before other flags are parsed because they depend on it.
std::string model_of(int argc, char** argv);

// Sets the layout of the help, which all programs share.
void set_up_help(CLI::App& app, const std::string& footer);
// Returns false if the program should exit now, with `exit_code`: after --help, or after a
// mistake, already explained on standard error. Rejects empty values and a filter without a
// policy that uses it, and checks the files to be written (output_file.h). List a new flag that
// names such a file in flag_groups.cc.
bool parse_or_explain(CLI::App& app, int argc, char** argv, int& exit_code);

}  // namespace tidemark
