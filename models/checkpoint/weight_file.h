// A file of weights from elsewhere, with messages for the files that people try instead.
//
// Threads: any; each file by one at a time.
#pragma once

#include <string>

#include "models/checkpoint/safetensors.h"

namespace tidemark {

// Throws DataError if it is no safetensors file: for one that PyTorch wrote (torch.save), with
// the lines of Python that convert it; for a training state, with the flags that go on with it.
SafetensorsFile open_weights(const std::string& path);

}  // namespace tidemark
