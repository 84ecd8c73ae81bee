// Files of Hugging Face: weights, which name the same tensors in several ways, the config.json
// beside them, which says how large the network is, and the tokenizer_config.json.
//
// Pure functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "models/checkpoint/weights.h"
#include "models/text_models.h"

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

// Of a config.json: sizes, eps of norms, for models of type "bert", "roberta",
// "xlm-roberta" and "gpt2". Dropout stays as in the options' defaults. Throws DataError naming
// the key where it is missing, or is something that these networks do not do.
TextNetworkOptions read_hugging_face_config(const std::string& path);
// The same of its text; `from` is what a DataError calls it.
TextNetworkOptions parse_hugging_face_config(const std::string& json, const std::string& from);
// A config.json of these sizes, in one line, from which the functions above make them again.
std::string hugging_face_config(const TextNetworkOptions& options);

// 'do_lower_case' of a tokenizer_config.json; none: it does not say. Throws DataError.
std::optional<bool> read_lower_case(const std::string& path);

// What two networks have to agree in for the weights of one to fit the other, but for the rows
// of their vocabularies. 0: not known.
struct TextNetworkSizes {
  int64_t layers = 0, width = 0, heads = 0, inner = 0, positions = 0;
};
TextNetworkSizes sizes_of(const TextNetworkOptions& options);
// By the names and shapes in a file's header, which do not tell heads. All 0 if there is no
// such network in it.
TextNetworkSizes sizes_in(const SafetensorsFile& file);
// Where both are known and differ: "2 layers, hidden size 32; gpt2 has 12 layers, hidden size
// 768", with `theirs` called `name`. Empty if they agree.
std::string difference(const TextNetworkSizes& ours, const TextNetworkSizes& theirs,
                       const std::string& name);

}  // namespace tidemark
