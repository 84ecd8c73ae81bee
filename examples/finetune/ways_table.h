// The dry run's comparison of ways to fine-tune a model.
#pragma once

#include <string>

#include "examples/finetune/finetune_flags.h"

namespace tidemark {

// What all weights and LoRA, each with and without offloading, would need and take for this
// model, length, batch and memory, by dry runs on the simulator, which take some seconds; then
// the command for each that fits. Times are the simulator's.
std::string ways_table(const FinetuneFlags& flags);

}  // namespace tidemark
