// Makes image classifiers by name.
//
// Threads: the session's issuing thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/image_model.h"
#include "models/nn/parameter_init.h"

namespace tidemark {

// Makes the network in the current session. Throws UsageError, listing the names, or
// OutOfMemory.
std::unique_ptr<ImageModel> make_image_model(const std::string& name,
                                             const ImageModelOptions& options,
                                             ParameterInit& init);
const std::vector<std::string>& image_model_names();

}  // namespace tidemark
