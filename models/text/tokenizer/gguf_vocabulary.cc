// read_gguf_vocabulary() (tokenizer_gguf.h).
#include <limits>
#include <utility>

#include "models/text/tokenizer/tokenizer_gguf.h"

namespace tidemark {
namespace {

class VocabularyReader {
 public:
  explicit VocabularyReader(GgufFile& file) : file_(file) {}

  GgufVocabulary run() {
    GgufVocabulary read;
    read.model = file_.text(key("model"));
    if (has("pre")) read.pre = file_.text(key("pre"));
    read.tokens = file_.texts(key("tokens"));
    if (has("merges")) read.merges = file_.texts(key("merges"));
    if (has("token_type")) {
      for (const double type : file_.numbers(key("token_type"))) {
        read.token_type.push_back(type >= 0 && type < 256 ? static_cast<int32_t>(type) : -1);
      }
    }
    if (has("scores")) {
      for (const double score : file_.numbers(key("scores"))) {
        read.scores.push_back(static_cast<float>(score));
      }
    }
    read.bos_token_id = id("bos_token_id");
    read.eos_token_id = id("eos_token_id");
    read.unknown_token_id = id("unknown_token_id");
    read.padding_token_id = id("padding_token_id");
    for (const char* name : {"eos_token_id", "eot_token_id", "eom_token_id"}) {
      if (const auto stop = id(name)) read.stops.insert(*stop);
    }
    read.add_bos_token = flag("add_bos_token");
    read.add_eos_token = flag("add_eos_token");
    read.add_space_prefix = flag("add_space_prefix");
    return read;
  }

 private:
  static std::string key(const std::string& name) { return "tokenizer.ggml." + name; }
  bool has(const std::string& name) const { return file_.has(key(name)); }
  std::optional<bool> flag(const std::string& name) {
    if (!has(name)) return std::nullopt;
    return file_.flag(key(name));
  }
  std::optional<int32_t> id(const std::string& name) {
    if (!has(name)) return std::nullopt;
    const int64_t value = file_.count(key(name));
    if (value > std::numeric_limits<int32_t>::max()) {
      file_.fail_value(key(name), "is " + std::to_string(value) + ", which is no token");
    }
    return static_cast<int32_t>(value);
  }

  GgufFile& file_;
};

}  // namespace

GgufVocabulary read_gguf_vocabulary(GgufFile& file) { return VocabularyReader(file).run(); }

}  // namespace tidemark
