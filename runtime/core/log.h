// Tidemark's logger: "tidemark" on standard error, or a logger that the program has registered
// with spdlog under that name. TIDEMARK_LOG sets its level (trace, debug, info, warn, error,
// critical, off); the default is warn.
//
// Threads: any.
#pragma once

#include <spdlog/logger.h>

namespace tidemark {

spdlog::logger& log();

}  // namespace tidemark
