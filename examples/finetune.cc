// Fine-tunes a language model in the memory at hand, and lets it answer prompts.
// `finetune --help` explains; examples/finetune/README.md leads from nothing to an adapter.
//
//   $ finetune --model SmolLM2-135M-Instruct/ --lora-rank 8 --output adapter/
//
// The run itself is examples/common/run.h; what it runs is examples/finetune/finetune_job.cc.
#include "examples/common/run.h"
#include "examples/finetune/finetune_flags.h"
#include "examples/finetune/finetune_job.h"

int main(int argc, char** argv) {
  return tidemark::run_training("finetune", argc, argv, tidemark::parse_finetune_flags,
                                tidemark::open_finetune_job);
}
