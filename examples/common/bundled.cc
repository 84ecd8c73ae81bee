#include "examples/common/bundled.h"

#include <filesystem>

namespace tidemark {

std::string bundled_path(const std::string& name) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    const fs::path installed =
        program.parent_path().parent_path() / "share/tidemark/data" / name;
    if (fs::exists(installed, error)) return installed.string();
  }
  return (fs::path(TIDEMARK_DATA_DIR) / name).string();
}

}  // namespace tidemark
