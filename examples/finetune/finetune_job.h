// finetune as a job for the run loop (run.h).
#pragma once

#include <memory>

#include "examples/common/training.h"
#include "examples/finetune/finetune_flags.h"

namespace tidemark {

// `with_data`: opens the data; otherwise only sizes are known. Throws UsageError, DataError.
std::unique_ptr<Job> open_finetune_job(const FinetuneFlags& flags, bool with_data);

}  // namespace tidemark
