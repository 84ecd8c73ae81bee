// Fine-tunes a language model in the memory at hand, and lets it answer prompts.
// `finetune --help` explains; examples/finetune/README.md leads from nothing to an adapter.
//
//   $ finetune --model SmolLM2-135M-Instruct/ --lora-rank 8 --output adapter/
//
// The run itself is examples/common/run.h; what it runs is examples/finetune/finetune_job.cc.
#include "examples/common/console.h"
#include "examples/common/run.h"
#include "examples/finetune/finetune_flags.h"
#include "examples/finetune/finetune_job.h"
#include "examples/finetune/ways_table.h"

int main(int argc, char** argv) {
  using namespace tidemark;
  return run_program("finetune", [&] {
    int exit_code = 0;
    const std::optional<FinetuneFlags> flags = parse_finetune_flags(argc, argv, exit_code);
    if (!flags) return exit_code;
    if (flags->dry_run) {
      const int code = explain_errors("finetune", [&] {
        print_out("{}\n", ways_table(*flags));
        return int{kDone};
      });
      if (code != kDone) return code;
    }
    return run_job("finetune", *flags,
                   [&](bool with_data) { return open_finetune_job(*flags, with_data); });
  });
}
