// LoRA for whole networks (Hu et al., 2021, arXiv:2106.09685): the network's parameters stay as
// they are, and chosen dense layers get a trained change of low rank (Dense::adapt).
//
// Threads: the session's issuing thread.
#pragma once

#include <string>
#include <vector>

#include "models/nn/dense.h"
#include "models/nn/module.h"
#include "models/nn/parameter_init.h"

namespace tidemark {

struct LoraOptions {
  LowRankOptions change{};
  // Last parts of the names of layers, as in PEFT: "q_proj". Empty: all dense layers but a head
  // ("lm_head"), PEFT's "all-linear".
  std::vector<std::string> targets{};
};

// Freezes all parameters and changes each dense layer that a target names. Throws UsageError if
// a target names none, with the names that there are; nothing is changed then.
void add_lora(Module& model, const LoraOptions& options, ParameterInit& init);

// Whether a parameter belongs to such a change.
bool is_lora(const std::string& parameter);

// The parameters of the network without changes: those that were there before add_lora(), the
// changed weights with their changes added. These are results of operators, so a budget holds
// for them too; saving them needs one at a time.
std::vector<NamedTensor> merged_parameters(Module& model);

}  // namespace tidemark
