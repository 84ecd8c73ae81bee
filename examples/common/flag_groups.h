// The part of the command line that training programs share. Only for files that parse flags:
// it brings in all of CLI11.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "examples/common/flags.h"
#include "examples/common/training_flags.h"

namespace tidemark {

// For every flag that is a number with a point: CLI11's own ranges let NaN pass.
CLI::Validator finite_number();
// For every flag that is an unsigned number: CLI11 makes large ones of those below 0.
CLI::Validator whole_number();

// What the help of a program says about flags that all have.
struct OptimizerHelp {
  std::string rate;                    // of --lr
  std::vector<std::string> schedules;  // that --lr-schedule takes
  std::string schedule;
  std::string seed;
};

// Groups of flags for the help, in the program's order. The names are those of the contract.
void add_length_flags(CLI::App& app, RunFlags& flags, const std::string& group,
                      const std::string& batch, const std::string& epochs);
void add_dtype_flag(CLI::App& app, RunFlags& flags, const std::string& group);
void add_memory_flags(CLI::App& app, RunFlags& flags);
void add_optimizer_flags(CLI::App& app, RunFlags& flags, const OptimizerHelp& help);
void add_machine_flags(CLI::App& app, RunFlags& flags);

// --lr-steps, --clip, --accumulate.
void add_step_flags(CLI::App& app, TrainingFlags& flags);
// --load, --save, --checkpoint, --checkpoint-every, --resume, --evaluate. `load`: the names of
// that flag; `about_load`: its help.
void add_file_flags(CLI::App& app, TrainingFlags& flags, const std::string& load,
                    const std::string& about_load, const std::string& about_save);

// All flags of train_resnet and of train_bert, for programs that train what these do.
struct ResNetFlags;
struct BertFlags;
void add_flags(CLI::App& app, ResNetFlags& flags);
void add_flags(CLI::App& app, BertFlags& flags);

// The value of --model, before anything else is understood: the other flags depend on it.
std::string model_of(int argc, char** argv);

// How all programs' help looks.
void set_up_help(CLI::App& app, const std::string& footer);
// False if the program is to end now, with `exit_code`: after --help, or after a mistake, which
// has been explained on standard error. No value may be empty, and the files to be written are
// checked (output_file.h): a new flag that names one is to be listed in flag_groups.cc.
bool parse_or_explain(CLI::App& app, int argc, char** argv, int& exit_code);

}  // namespace tidemark
