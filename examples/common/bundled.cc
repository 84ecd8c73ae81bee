#include "examples/common/bundled.h"

#include <filesystem>
#include <string_view>
#include <vector>

#include "runtime/core/errors.h"

namespace tidemark {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> places_of(const std::string& name) {
  std::vector<fs::path> places;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    places.push_back(program.parent_path().parent_path() / "share/tidemark/data" / name);
  }
  places.push_back(fs::path(TIDEMARK_DATA_DIR) / name);
  return places;
}

std::string first_of(const std::vector<fs::path>& places, const std::string& asked_for) {
  std::error_code error;
  std::string tried;
  for (const fs::path& place : places) {
    if (fs::exists(place, error)) return place.string();
    tried += (tried.empty() ? "" : ", ") + place.string();
  }
  throw DataError(asked_for, "not found; looked for " + tried);
}

}  // namespace

std::string bundled_path(const std::string& name) { return first_of(places_of(name), name); }

std::string given_or_bundled(const std::string& path) {
  constexpr std::string_view kData = "data/";
  std::error_code error;
  if (!path.starts_with(kData) || fs::exists(path, error)) return path;
  std::vector<fs::path> places = places_of(path.substr(kData.size()));
  places.insert(places.begin(), path);
  return first_of(places, path);
}

}  // namespace tidemark
