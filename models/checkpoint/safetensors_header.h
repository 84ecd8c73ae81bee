// The JSON header of a safetensors file, parsed and checked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/checkpoint/safetensors.h"

namespace tidemark {

// A file begins with these 8 bytes, the length of the header's JSON.
inline constexpr int64_t kSafetensorsPrefix = 8;
// The limit of the reference implementation.
inline constexpr int64_t kSafetensorsLongestHeader = 100'000'000;

struct SafetensorsHeader {
  WeightMetadata metadata;
  std::vector<WeightEntry> entries;  // ascending; begin and end count from the file's start
};

// `json` is bytes [8, 8 + json.size()) of a file of `file_size` bytes called `name`. Throws
// DataError.
SafetensorsHeader parse_safetensors_header(const std::string& name, std::string_view json,
                                           int64_t file_size);

}  // namespace tidemark
