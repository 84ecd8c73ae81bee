#include "models/checkpoint/weight_file.h"

#include <array>
#include <cstring>
#include <filesystem>

#include "runtime/core/errors.h"
#include "runtime/core/input_file.h"

namespace tidemark {
namespace {

constexpr const char* kTrainingState = "tidemark training state";

// A zip archive, as torch.save writes since 1.6, or a pickle, as it did before.
bool is_from_pytorch(const std::string& path) {
  InputFile file(path);
  std::array<uint8_t, 4> first{};
  if (file.read(first) < first.size()) return false;
  return std::memcmp(first.data(), "PK\3\4", first.size()) == 0 ||
         (first[0] == 0x80 && first[1] >= 2 && first[1] <= 5);
}

std::string conversion(const std::string& path) {
  const std::string to = std::filesystem::path(path).replace_extension(".safetensors").string();
  return "was written by torch.save; only safetensors files are read. To convert it, in "
         "Python:\n"
         "  import torch; from safetensors.torch import save_file\n"
         "  save_file({k: v.clone().contiguous() for k, v in torch.load('" +
         path + "', map_location='cpu', weights_only=True).items()}, '" + to + "')";
}

}  // namespace

SafetensorsFile open_weights(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw DataError(path, "is a folder; give the safetensors file in it");
  }
  if (is_from_pytorch(path)) throw DataError(path, conversion(path));
  SafetensorsFile file(path);
  const auto format = file.metadata().find("format");
  if (format != file.metadata().end() && format->second.starts_with(kTrainingState)) {
    throw DataError(path, "is a checkpoint, not a weight file; to continue it: --checkpoint " +
                              path + " --resume");
  }
  return file;
}

}  // namespace tidemark
