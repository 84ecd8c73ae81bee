// Networks that classify images, by name.
//
// Threads: the session's issuing thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/image_model.h"
#include "models/nn/parameter_init.h"

namespace tidemark {

// In the current session. Throws UsageError that lists the names, OutOfMemory.
std::unique_ptr<ImageModel> make_image_model(const std::string& name,
                                             const ImageModelOptions& options,
                                             ParameterInit& init);
const std::vector<std::string>& image_model_names();

}  // namespace tidemark
