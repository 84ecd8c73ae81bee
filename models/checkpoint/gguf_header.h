// What comes before the data in a GGUF file, read and checked:
//
//   "GGUF" | version: 4 bytes | tensors: 8 | values: 8 | values | tensors | padding | data
//   value:  key | type: 4 bytes | value        array: type of elements: 4 | count: 8 | elements
//   tensor: name | dimensions: 4 | the extents, innermost first: 8 each | type: 4 | offset: 8
//   Keys, names and text are a length of 8 bytes and as many bytes. All numbers are
//   little-endian.
//
// The data begin at a multiple of the value "general.alignment" (32 without it), and so does
// each tensor in them. Of the metadata only keys, types and places are kept, so memory is small
// beside the file, whatever it declares.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "models/checkpoint/gguf_input.h"
#include "models/checkpoint/gguf_types.h"
#include "models/checkpoint/weight_source.h"

namespace tidemark {

struct GgufValue {
  GgufKind kind = GgufKind::kUInt8;
  GgufKind element = GgufKind::kUInt8;  // of arrays
  uint64_t count = 0;                   // of arrays
  int64_t begin = 0;                    // byte of the value, or of an array's first element
};

struct GgufHeader {
  std::map<std::string, GgufValue, std::less<>> values;
  std::vector<WeightEntry> entries;    // ascending; begin and end count from the file's start
  std::vector<const GgufType*> types;  // of each entry
};

// Reads the header from the beginning of the file. Throws DataError.
GgufHeader read_gguf_header(GgufInput& input);

}  // namespace tidemark
