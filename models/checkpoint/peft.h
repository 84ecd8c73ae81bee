// LoRA adapters in the format of Hugging Face's PEFT: a folder with adapter_config.json and
// adapter_model.safetensors.
//
//   save_adapter("adapter", model, options, "HuggingFaceTB/SmolLM2-135M-Instruct");
//   add_lora(model, read_adapter_config("adapter"), init);
//   load_adapter("adapter", model);
//
// Threads: the session's issuing thread.
#pragma once

#include <string>

#include "models/nn/lora.h"
#include "models/nn/module.h"

namespace tidemark {

// Writes the changes of add_lora(), made with `options`. `base`: where the network's own
// weights are, a folder or a name; only written down. Makes the folder if there is none; a file
// that is there is replaced atomically. Throws DataError if a file cannot be written,
// UsageError on devices without data.
void save_adapter(const std::string& folder, Module& model, const LoraOptions& options,
                  const std::string& base);

// The options of an adapter. `target_modules` is what it is in PEFT: a list of names, a regular
// expression for whole names, or "all-linear". Throws DataError, naming the key, if a file asks
// for what add_lora does not do, such as ranks that differ between layers.
LoraOptions read_adapter_config(const std::string& folder);

// REQUIRES: the model has been changed by add_lora() with the adapter's options. Throws
// DataError if the tensors do not fit; the model is unchanged then.
void load_adapter(const std::string& folder, Module& model);

}  // namespace tidemark
