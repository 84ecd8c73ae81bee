// The command line of finetune.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "examples/common/training_flags.h"
#include "models/nn/lora.h"
#include "models/optim/optimizer.h"
#include "models/text_models.h"

namespace tidemark {

// How a continuation of a prompt is chosen.
struct GenerateFlags {
  std::vector<std::string> prompts;
  int64_t longest = 128;   // tokens to generate
  double temperature = 0;  // 0: always the likeliest token
  double top_p = 1;        // only the likeliest tokens that have this probability together
};

struct FinetuneFlags : TrainingFlags {
  FinetuneFlags() {
    optimizer = "adamw";
    schedule = "cosine";
    clip = 1;
    batch = 8;
    decays_all = false;
  }

  // `model` is a folder, a GGUF file, or, where nothing is read, the name of a network.
  TextModelInfo network;  // its sizes
  std::string validation;
  double hold_out = 0.05;  // share of the data to validate on, without `validation`
  int64_t length = 512;    // of sequences
  bool packing = true;     // several examples in a sequence

  std::optional<LoraOptions> lora;  // none: all parameters are trained
  std::string adapter;              // folder of an adapter to start from; empty: none
  DType stored = DType::kFloat32;   // of frozen weights, or, without LoRA, of all matrices
  AdamStorage adam;                 // of trained weights and their state; its seed is `seed`

  std::optional<int64_t> warmup;  // steps; none: a share of the run
  int64_t validate_every = 0;     // steps; 0: once an epoch
  int64_t patience = 0;           // validations without a better loss until training stops

  std::string output;  // folder for the result; empty: none
  bool merge = false;  // write the whole network, not the adapter
  GenerateFlags generate;
  bool trains = true;  // false: only generates

  int64_t warmup_steps(int64_t run) const;
  // The longest sequence in training or in generation.
  int64_t longest() const;
};

// Returns complete flags. Returns nothing if the program should exit now, with `exit_code`:
// after --help, or after a mistake, already explained on standard error.
std::optional<FinetuneFlags> parse_finetune_flags(int argc, char** argv, int& exit_code);

}  // namespace tidemark
