// Files from Hugging Face: weights, whose tensors have several possible names; config.json,
// which gives the network's sizes; and tokenizer_config.json.
//
// Pure functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "models/checkpoint/weights.h"
#include "models/text_models.h"

namespace tidemark {

// Names for LoadOptions: maps each tensor of models/bert.h and models/gpt2.h to its name in
// `file`. That is the tensor's own name, or a variant:
// - without its first part ("bert.", "roberta.", "transformer."), if only the network below the
//   heads was saved;
// - with "gamma" and "beta" in layer norms, as in old files;
// - with the masked-LM bias as "cls.predictions.decoder.bias" or "lm_head.decoder.bias".
// If the file has none of these, the tensor keeps its name and is reported as missing.
// REQUIRES: `file` outlives the result.
WeightNames hugging_face_names(const SafetensorsFile& file);

// Reads the sizes and the norms' eps from a config.json of type "bert", "roberta",
// "xlm-roberta" or "gpt2". Dropout keeps the options' defaults. Throws DataError, naming the
// key, if a key is missing or asks for something that these networks do not implement.
TextNetworkOptions read_hugging_face_config(const std::string& path);
// The same from the file's text; `from` is the name used in a DataError.
TextNetworkOptions parse_hugging_face_config(const std::string& json, const std::string& from);
// Writes a config.json with these sizes, in one line; the functions above read it back.
std::string hugging_face_config(const TextNetworkOptions& options);

// 'do_lower_case' of a tokenizer_config.json; nullopt if it is absent. Throws DataError.
std::optional<bool> read_lower_case(const std::string& path);

// Sizes that must agree for one network's weights to fit another, apart from the vocabulary's
// rows. 0: unknown.
struct TextNetworkSizes {
  int64_t layers = 0, width = 0, heads = 0, inner = 0, positions = 0;
};
TextNetworkSizes sizes_of(const TextNetworkOptions& options);
// Sizes derived from the names and shapes in a file's header, which do not give the number of
// heads. All 0 if the file contains no such network.
TextNetworkSizes sizes_in(const SafetensorsFile& file);
// Describes the sizes that both know and that differ: "2 layers, hidden size 32; gpt2 has 12
// layers, hidden size 768", with `theirs` called `name`. Empty if they agree.
std::string difference(const TextNetworkSizes& ours, const TextNetworkSizes& theirs,
                       const std::string& name);

}  // namespace tidemark
