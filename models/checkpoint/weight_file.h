// Opens weights from elsewhere, with helpful messages for files that people try by mistake.
//
// Threads: any; one thread at a time per source.
#pragma once

#include <memory>
#include <string>

#include "models/checkpoint/weight_source.h"

namespace tidemark {

// Opens a safetensors file, the index of sharded ones (*.json), a GGUF file of one of the
// networks in gguf_llama.h, or a folder of Hugging Face's with model.safetensors or
// model.safetensors.index.json. Tensors have the names of Hugging Face.
//
// Throws DataError if it is none of these. For a file from PyTorch (torch.save), the message
// gives the Python lines that convert it; for a training state, the flags that resume it.
std::unique_ptr<WeightSource> open_weights(const std::string& path);

}  // namespace tidemark
