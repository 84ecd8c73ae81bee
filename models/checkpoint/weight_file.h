// Opens weight files from elsewhere, with helpful messages for files that people try by
// mistake.
//
// Threads: any; one thread at a time per file.
#pragma once

#include <string>

#include "models/checkpoint/safetensors.h"

namespace tidemark {

// Throws DataError if the file is not a safetensors file. For a file from PyTorch (torch.save),
// the message gives the Python lines that convert it; for a training state, the flags that
// resume it.
SafetensorsFile open_weights(const std::string& path);

}  // namespace tidemark
