// LoRA for whole networks (Hu et al., 2021, arXiv:2106.09685): the network's parameters stay as
// they are, and chosen dense layers get a trained change of low rank (Dense::adapt).
//
// Threads: the session's issuing thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/nn/dense.h"
#include "models/nn/module.h"
#include "models/nn/parameter_init.h"

namespace tidemark {

// Says which layers are changed, by their whole names.
struct LayerPattern {
  std::string text;  // as it is written down
  std::function<bool(const std::string& layer)> matches;
};

struct LoraOptions {
  LowRankOptions change{};
  // Names of layers or their last parts, as in PEFT: "q_proj". Empty: all dense layers but a
  // head ("lm_head"), PEFT's "all-linear".
  std::vector<std::string> targets{};
  std::optional<LayerPattern> pattern{};  // instead of targets
};

// Freezes all parameters and changes each dense layer that a target names. Throws UsageError if
// a target or the pattern names none, with the names that there are, or the head; nothing is
// changed then.
void add_lora(Module& model, const LoraOptions& options, ParameterInit& init);

// Whether a parameter belongs to such a change.
bool is_lora(const std::string& parameter);

}  // namespace tidemark
