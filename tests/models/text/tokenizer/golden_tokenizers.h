// tests/golden/tokenizers.json.gz, which scripts/make_tokenizer_golden.py makes, and
// tests/golden/chats.json, which scripts/make_chat_golden.py makes.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/text/tokenizer/tokenizer.h"
#include "runtime/core/text_file.h"

namespace tidemark::testing {

inline const nlohmann::json& golden_tokenizers() {
  static const nlohmann::json golden =
      nlohmann::json::parse(read_text_file(TIDEMARK_GOLDEN_DIR "/tokenizers.json.gz"));
  return golden;
}

inline const nlohmann::json& golden_chats() {
  static const nlohmann::json golden =
      nlohmann::json::parse(read_text_file(TIDEMARK_GOLDEN_DIR "/chats.json"));
  return golden;
}

inline std::vector<std::string> golden_names() {
  std::vector<std::string> names;
  for (const auto& each : golden_tokenizers()["cases"]) names.push_back(each["name"]);
  return names;
}

inline const nlohmann::json& golden_case(const std::string& name) {
  for (const auto& each : golden_tokenizers()["cases"]) {
    if (each["name"] == name) return each;
  }
  throw std::logic_error("no case " + name);
}

inline Tokenizer golden_tokenizer(const std::string& name) {
  return Tokenizer::parse(name, golden_case(name)["tokenizer"].dump());
}

}  // namespace tidemark::testing
