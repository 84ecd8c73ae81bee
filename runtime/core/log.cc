#include "runtime/core/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <memory>
#include <string>

namespace tidemark {
namespace {

std::shared_ptr<spdlog::logger> make_logger() {
  if (auto logger = spdlog::get("tidemark")) return logger;
  auto logger = spdlog::stderr_color_mt("tidemark");
  logger->set_level(spdlog::level::warn);
  if (const char* const wanted = std::getenv("TIDEMARK_LOG")) {
    const spdlog::level::level_enum level = spdlog::level::from_str(wanted);
    // from_str() returns `off` for names that it does not know.
    if (level == spdlog::level::off && std::string(wanted) != "off") {
      logger->warn("TIDEMARK_LOG={} is not a log level; using warn", wanted);
    } else {
      logger->set_level(level);
    }
  }
  return logger;
}

}  // namespace

spdlog::logger& log() {
  static const std::shared_ptr<spdlog::logger> logger = make_logger();
  return *logger;
}

}  // namespace tidemark
