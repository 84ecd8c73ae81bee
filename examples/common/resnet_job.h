// What train_resnet does, as a job of the run loop (run.h).
#pragma once

#include <memory>

#include "examples/common/resnet_flags.h"
#include "examples/common/training.h"

namespace tidemark {

// `with_data`: opens the data; if not, sizes alone are known. Throws UsageError, DataError.
std::unique_ptr<Job> open_resnet_job(const ResNetFlags& flags, bool with_data);

}  // namespace tidemark
