// train_resnet as a job for the run loop (run.h).
#pragma once

#include <memory>

#include "examples/common/resnet_flags.h"
#include "examples/common/training.h"

namespace tidemark {

// `with_data`: opens the data; otherwise only sizes are known. Throws UsageError, DataError.
std::unique_ptr<Job> open_resnet_job(const ResNetFlags& flags, bool with_data);

}  // namespace tidemark
