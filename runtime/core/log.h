// The logger of everything in Tidemark: "tidemark" on standard error, or the one that the
// program registered with spdlog under that name before. Its level is TIDEMARK_LOG (trace,
// debug, info, warn, error, critical, off), by default warn.
//
// Threads: any.
#pragma once

#include <spdlog/logger.h>

namespace tidemark {

spdlog::logger& log();

}  // namespace tidemark
