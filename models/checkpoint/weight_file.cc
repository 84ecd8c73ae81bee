#include "models/checkpoint/weight_file.h"

#include <array>
#include <filesystem>

#include "models/checkpoint/gguf_llama.h"
#include "models/checkpoint/safetensors.h"
#include "models/checkpoint/sharded_safetensors.h"
#include "runtime/core/errors.h"
#include "runtime/core/input_file.h"

namespace tidemark {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTrainingState = "tidemark training state";

// The first four bytes; fewer if the file is shorter.
std::string first_bytes(const std::string& path) {
  InputFile file(path);
  std::array<uint8_t, 4> first{};
  const size_t count = file.read(first);
  return {first.begin(), first.begin() + count};
}

// A zip archive, as torch.save writes since 1.6, or a pickle, as it did before.
bool is_from_pytorch(const std::string& first) {
  return first == "PK\3\4" ||
         (first.size() == 4 && first[0] == '\x80' && first[1] >= 2 && first[1] <= 5);
}

std::string conversion(const std::string& path) {
  const std::string to = fs::path(path).replace_extension(".safetensors").string();
  return "was written by torch.save; only safetensors files are read. To convert it, in "
         "Python:\n"
         "  import torch; from safetensors.torch import save_file\n"
         "  save_file({k: v.clone().contiguous() for k, v in torch.load('" +
         path + "', map_location='cpu', weights_only=True).items()}, '" + to + "')";
}

// The weights in a folder; model.safetensors first, as in Hugging Face's transformers.
std::string file_in(const fs::path& folder) {
  for (const char* name :
       {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"}) {
    std::error_code ignored;
    if (fs::is_regular_file(folder / name, ignored)) return (folder / name).string();
  }
  throw DataError(folder.string(),
                  "has neither model.safetensors nor model.safetensors.index.json");
}

}  // namespace

std::unique_ptr<WeightSource> open_weights(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return open_weights(file_in(path));
  if (path.ends_with(".json")) return std::make_unique<ShardedSafetensors>(path);
  const std::string first = first_bytes(path);
  if (first == "GGUF") return std::make_unique<GgufLlama>(path);
  if (is_from_pytorch(first)) throw DataError(path, conversion(path));
  auto file = std::make_unique<SafetensorsFile>(path);
  const auto format = file->metadata().find("format");
  if (format != file->metadata().end() && format->second.starts_with(kTrainingState)) {
    throw DataError(path, "is a checkpoint, not a weight file; to continue it: --checkpoint " +
                              path + " --resume");
  }
  return file;
}

}  // namespace tidemark
