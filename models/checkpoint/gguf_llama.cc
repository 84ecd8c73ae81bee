#include "models/checkpoint/gguf_llama.h"

#include <algorithm>
#include <array>
#include <utility>

#include "runtime/core/errors.h"

namespace tidemark {
namespace {

using NamePair = std::pair<std::string_view, std::string_view>;

constexpr std::array<NamePair, 3> kOuterNames{{{"token_embd", "model.embed_tokens"},
                                               {"output_norm", "model.norm"},
                                               {"output", "lm_head"}}};
constexpr std::array<NamePair, 9> kLayerNames{{{"attn_norm", "input_layernorm"},
                                               {"attn_q", "self_attn.q_proj"},
                                               {"attn_k", "self_attn.k_proj"},
                                               {"attn_v", "self_attn.v_proj"},
                                               {"attn_output", "self_attn.o_proj"},
                                               {"ffn_norm", "post_attention_layernorm"},
                                               {"ffn_gate", "mlp.gate_proj"},
                                               {"ffn_up", "mlp.up_proj"},
                                               {"ffn_down", "mlp.down_proj"}}};
constexpr std::string_view kLayer = "blk.";
// Factors of rotary frequencies, which belong into the config.
constexpr std::string_view kRotaryFactors = "rope_freqs.weight";
constexpr std::string_view kParts = "split.count";

std::string renamed(std::string_view name, std::span<const NamePair> pairs) {
  for (const auto& [from, to] : pairs) {
    if (!name.starts_with(from)) continue;
    const std::string_view end = name.substr(from.size());
    if (end == ".weight" || end == ".bias") return std::string(to) + std::string(end);
  }
  return {};
}

}  // namespace

std::string hugging_face_name(const std::string& gguf_name) {
  if (!gguf_name.starts_with(kLayer)) return renamed(gguf_name, kOuterNames);
  const size_t end = gguf_name.find_first_not_of("0123456789", kLayer.size());
  if (end == std::string::npos || end == kLayer.size() || gguf_name[end] != '.') return {};
  const std::string inner = renamed(std::string_view(gguf_name).substr(end + 1), kLayerNames);
  if (inner.empty()) return {};
  return "model.layers." + gguf_name.substr(kLayer.size(), end - kLayer.size()) + '.' + inner;
}

GgufLlama::GgufLlama(const std::string& path) : WeightSource(path), file_(path) {
  if (file_.has(kParts) && file_.count(kParts) > 1) {
    file_.fail_value(kParts, "is one of " + std::to_string(file_.count(kParts)) +
                                 " parts; only whole files are supported");
  }
  set_metadata({{"config", config_from_gguf(file_)}});
  std::vector<WeightEntry> entries;
  for (size_t i = 0; i < file_.entries().size(); ++i) {
    WeightEntry entry = file_.entries()[i];
    if (entry.name == kRotaryFactors) continue;
    const int64_t heads = paired_heads(entry.name);
    if (heads > 0 && (entry.shape.rank() == 0 || entry.shape[0] % (2 * heads) != 0)) {
      file_.fail(entry, "its rows are not those of " + std::to_string(heads) + " heads");
    }
    const std::string name = hugging_face_name(entry.name);
    if (name.empty()) file_.fail(entry, "is not part of such a network");
    entry.name = name;
    entries.push_back(std::move(entry));
    places_.push_back(i);
    heads_.push_back(heads);
  }
  set_entries(std::move(entries));
}

int64_t GgufLlama::paired_heads(const std::string& name) {
  if (file_.text("general.architecture") != "llama") return 0;
  const bool query = name.find(".attn_q.") != std::string::npos;
  if (!query && name.find(".attn_k.") == std::string::npos) return 0;
  const char* heads = "llama.attention.head_count";
  const char* of_keys = "llama.attention.head_count_kv";
  return file_.count(query || !file_.has(of_keys) ? heads : of_keys);
}

void GgufLlama::read_range(const WeightEntry& entry, Bytes offset, std::span<std::byte> out) {
  const size_t index = index_of(entry);
  const WeightEntry& there = file_.entries()[places_[index]];
  if (heads_[index] == 0) {
    file_.read(there, offset, out);
    return;
  }
  const int64_t rows = entry.shape[0], row_bytes = entry.bytes().count() / rows;
  const int64_t of_head = rows / heads_[index], half = of_head / 2;
  for (int64_t at = offset.count(); !out.empty();) {
    const int64_t row = at / row_bytes, within = at % row_bytes;
    const int64_t head = row / of_head, in_head = row % of_head;
    const int64_t row_there = head * of_head + in_head % half * 2 + in_head / half;
    const int64_t bytes = std::min(row_bytes - within, static_cast<int64_t>(out.size()));
    const auto piece = static_cast<size_t>(bytes);
    file_.read(there, Bytes(row_there * row_bytes + within), out.first(piece));
    out = out.subspan(piece);
    at += bytes;
  }
}

}  // namespace tidemark
