// Files of weights from Hugging Face, which name the same tensors in several ways.
//
// Pure functions; any thread.
#pragma once

#include "models/checkpoint/weights.h"

namespace tidemark {

// For LoadOptions: each tensor of models/bert.h and models/gpt2.h under the name that `file`
// has it by. That is the name itself, or it
// - without its first part, where only the network under the heads was saved ("bert.",
//   "roberta.", "transformer.");
// - with "gamma" and "beta" in layer norms, as old files have them;
// - with the masked-LM bias as "cls.predictions.decoder.bias" or "lm_head.decoder.bias".
// A tensor that is there under none of them keeps its name, and is reported as missing by it.
// REQUIRES: `file` outlives what is given.
WeightNames hugging_face_names(const SafetensorsFile& file);

}  // namespace tidemark
