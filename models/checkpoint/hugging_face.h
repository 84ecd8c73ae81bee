// Files from Hugging Face: weights, whose tensors have several possible names, and
// tokenizer_config.json. models/text_models.h reads config.json.
//
// Pure functions; any thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/checkpoint/weights.h"
#include "models/text_model.h"

namespace tidemark {

// Names for LoadOptions: maps each tensor of a text network to its name in `file`. That is the
// tensor's own name, or a variant:
// - without its first part ("bert.", "transformer."), if only the network below the heads was
//   saved;
// - with "gamma" and "beta" in layer norms, as in old files;
// - with the masked-LM bias as "cls.predictions.decoder.bias" or "lm_head.decoder.bias".
// If the file has none of these, the tensor keeps its name and is reported as missing.
// REQUIRES: `file` outlives the result.
WeightNames hugging_face_names(const WeightSource& file);

// 'do_lower_case' of a tokenizer_config.json; nullopt if it is absent. Throws DataError.
std::optional<bool> read_lower_case(const std::string& path);

// Writes a folder that transformers' from_pretrained() loads: model.safetensors and
// config.json, and copies of what `like` says about the tokenizer and about generation. `like`:
// the folder that the network came from; its config.json is kept, and it may be the same
// folder. Empty: there is none, and `config` is written. Makes the folder if there is none;
// each file is replaced atomically. Throws DataError, UsageError on devices without data.
void save_hugging_face_folder(const std::string& folder,
                              std::span<const DeferredTensor> tensors,
                              const std::string& config, const std::string& like);
// What to save of a network: its parameters, with the changes of add_lora() added to the
// weights.
std::vector<DeferredTensor> merged_parameters(Module& model);

// Sizes that a file's header gives for a network of the same family as `model`; it does not
// give the number of heads. All 0 if the file contains no such network.
TextModelSizes sizes_in(const WeightSource& file, const TextModelInfo& model);

}  // namespace tidemark
