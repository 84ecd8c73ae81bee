// config_from_gguf() (gguf_llama.h): the metadata of a GGUF file as a config.json.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numbers>
#include <system_error>

#include <nlohmann/json.hpp>

#include "models/checkpoint/gguf_llama.h"

namespace tidemark {
namespace {

using ConfigObject = nlohmann::ordered_json;

// The double nearest to the shortest decimal that gives the same float: 1e-5, which was stored
// as a float, and not 9.999999747e-06.
double as_written(double value) {
  const auto single = static_cast<float>(value);
  if (static_cast<double>(single) != value) return value;
  std::array<char, 64> text;
  const auto written = std::to_chars(text.data(), text.data() + text.size(), single);
  double decimal = value;
  std::from_chars(text.data(), written.ptr, decimal);
  return decimal;
}

class ConfigReader {
 public:
  explicit ConfigReader(GgufFile& file)
      : file_(file), architecture_(file.text(kArchitecture)), prefix_(architecture_ + '.') {}

  std::string read() {
    if (architecture_ != "llama" && architecture_ != "qwen2") {
      file_.fail_value(kArchitecture, "is " + quoted_name(architecture_) +
                                          "; 'llama' and 'qwen2' are supported");
    }
    refuse_experts();
    const bool qwen = architecture_ == "qwen2";
    json_["architectures"] = {qwen ? "Qwen2ForCausalLM" : "LlamaForCausalLM"};
    json_["model_type"] = architecture_;
    json_["hidden_act"] = "silu";
    const int64_t width = size("embedding_length"), heads = size("attention.head_count");
    json_["hidden_size"] = width;
    json_["intermediate_size"] = size("feed_forward_length");
    json_["num_hidden_layers"] = size("block_count");
    json_["num_attention_heads"] = heads;
    json_["num_key_value_heads"] =
        has("attention.head_count_kv") ? size("attention.head_count_kv") : heads;
    json_["head_dim"] = head_width(width, heads);
    json_["max_position_embeddings"] = size("context_length");
    json_["rms_norm_eps"] = number("attention.layer_norm_rms_epsilon");
    json_["rope_theta"] = has("rope.freq_base") ? number("rope.freq_base") : 10000.0;
    add_rotary_scaling();
    if (has("attention.sliding_window")) add_window(qwen);
    json_["vocab_size"] = vocabulary();
    json_["tie_word_embeddings"] = file_.find("output.weight") == nullptr;
    json_["attention_bias"] = file_.find("blk.0.attn_q.bias") != nullptr;
    json_["mlp_bias"] = file_.find("blk.0.ffn_up.bias") != nullptr;
    for (const char* token : {"bos", "eos"}) {
      const std::string key = std::string("tokenizer.ggml.") + token + "_token_id";
      if (file_.has(key)) json_[std::string(token) + "_token_id"] = file_.count(key);
    }
    return json_.dump();
  }

 private:
  static constexpr const char* kArchitecture = "general.architecture";
  static constexpr int64_t kMaxSize = 1 << 30;

  bool has(const char* key) const { return file_.has(prefix_ + key); }
  double number(const char* key) {
    const double value = file_.number(prefix_ + key);
    if (!std::isfinite(value) || value <= 0) fail(key, "is not a number above 0");
    return as_written(value);
  }
  int64_t size(const char* key) {
    const int64_t value = file_.count(prefix_ + key);
    if (value < 1 || value > kMaxSize) fail(key, "is not a number from 1 to 2^30");
    return value;
  }
  [[noreturn]] void fail(const char* key, const std::string& what) const {
    file_.fail_value(prefix_ + key, what);
  }

  // Mixtral's files have the architecture "llama" too.
  void refuse_experts() {
    if (has("expert_count") && file_.count(prefix_ + "expert_count") > 0) {
      fail("expert_count", "networks with experts are not supported");
    }
  }

  int64_t head_width(int64_t width, int64_t heads) {
    if (!has("attention.key_length") && width % heads != 0) {
      fail("attention.head_count",
           std::to_string(heads) + " heads for a width of " + std::to_string(width));
    }
    const int64_t keys =
        has("attention.key_length") ? size("attention.key_length") : width / heads;
    for (const char* key : {"attention.value_length", "rope.dimension_count"}) {
      if (has(key) && size(key) != keys) {
        fail(key, "is " + std::to_string(size(key)) + ", but heads have " +
                      std::to_string(keys) + " elements");
      }
    }
    return keys;
  }

  int64_t vocabulary() {
    const WeightEntry* words = file_.find("token_embd.weight");
    if (words == nullptr || words->shape.rank() != 2) {
      file_.fail_value(kArchitecture, "there is no matrix 'token_embd.weight'");
    }
    return words->shape[0];
  }

  // In Hugging Face's configurations, Llama's type has no window, but Mistral's has.
  void add_window(bool qwen) {
    json_["sliding_window"] = size("attention.sliding_window");
    if (qwen) {
      json_["use_sliding_window"] = true;
    } else {
      json_["architectures"] = {"MistralForCausalLM"};
      json_["model_type"] = "mistral";
    }
  }

  void add_rotary_scaling() {
    const WeightEntry* factors = file_.find("rope_freqs.weight");
    // Older files have a factor alone, which is linear.
    constexpr const char *kFactor = "rope.scaling.factor", *kOlder = "rope.scale_linear";
    const char* factor = has(kOlder) && !has(kFactor) ? kOlder : kFactor;
    const std::string type = has("rope.scaling.type")
                                 ? file_.text(prefix_ + "rope.scaling.type")
                                 : (has(factor) ? "linear" : "none");
    if (type != "none" && type != "linear") {
      fail("rope.scaling.type", quoted_name(type) + " is not supported");
    }
    if (factors != nullptr) {
      if (type != "none") fail("rope.scaling.type", "is given besides 'rope_freqs.weight'");
      add_llama3(*factors);
    } else if (type != "none") {
      json_["rope_scaling"] = {{"rope_type", type}, {"factor", number(factor)}};
    }
  }

  // Files of Llama 3.1 and later have the factors that follow from "rope_type": "llama3", but
  // not its numbers. All of these networks have the same ones, apart from the factor.
  void add_llama3(const WeightEntry& entry) {
    const auto half = json_["head_dim"].get<int64_t>() / 2;
    if (!(entry.shape == Shape{half}) || entry.type != "F32") {
      file_.fail(entry, "is not F32 (" + std::to_string(half) + ")");
    }
    std::vector<float> factors(static_cast<size_t>(half));
    file_.read(entry, std::as_writable_bytes(std::span(factors)));
    constexpr double kLow = 1, kHigh = 4, kContext = 8192;
    const double theta = json_["rope_theta"].get<double>(), most = factors.back();
    for (size_t i = 0; i < factors.size(); ++i) {
      const double exponent = static_cast<double>(i) / static_cast<double>(half);
      const double turns = kContext / (2 * std::numbers::pi * std::pow(theta, exponent));
      const double share = std::clamp((turns - kLow) / (kHigh - kLow), 0.0, 1.0);
      const double expected = 1 / ((1 - share) / most + share);
      if (!(std::abs(factors[i] - expected) <= 1e-4 * expected)) {
        file_.fail(entry, "factor " + std::to_string(i) + " is not that of Llama 3's scaling");
      }
    }
    json_["rope_scaling"] = {{"rope_type", "llama3"},
                             {"factor", as_written(most)},
                             {"low_freq_factor", kLow},
                             {"high_freq_factor", kHigh},
                             {"original_max_position_embeddings", int64_t{8192}}};
  }

  GgufFile& file_;
  const std::string architecture_, prefix_;
  ConfigObject json_;
};

}  // namespace

std::string config_from_gguf(GgufFile& file) { return ConfigReader(file).read(); }

}  // namespace tidemark
