// Programs recorded for DTR's simulator (Kirisame et al., "Dynamic Tensor Rematerialization",
// ICLR 2021): one line of JSON per instruction, with numbers as strings.
//
//   {"INSTRUCTION": "CONSTANT", "NAME": "w"}               then MEMORY; there from the start
//   {"INSTRUCTION": "CALL", "NAME": "conv", "ARGS": ["x", "w"], "RESULT": ["y"],
//    "TIME": "81200"}                                      then MEMORY and ALIAS of each result
//   {"INSTRUCTION": "MEMORY", "NAME": "y", "MEMORY": "4096"}
//   {"INSTRUCTION": "ALIAS", "NAME": "y", "ALIAS": "-1"}   or which argument it is a view of
//   {"INSTRUCTION": "MUTATE", "NAME": "add_", "ARGS": ["w", "g"], "MUTATE": [0], "TIME": "70"}
//   {"INSTRUCTION": "COPY", "DST": "z", "SRC": "y"}        another name for the same tensor
//   {"INSTRUCTION": "COPY_FROM", "DST": "z", "SRC": "x"}   z stands for x's tensor from now on
//   {"INSTRUCTION": "RELEASE", "NAME": "y"}
//
// Times are in nanoseconds, memory in bytes. ANNOTATE and PIN are ignored, and so is the
// RELEASE of an unknown name, as in DTR's own reader.
//
// The parsed log has no names: it has storages, the calls that read and write them, and the
// point where each storage loses its last name. A view is its argument's storage, so restoring
// that storage is enough (DTR also reruns the view, which takes almost no time). MUTATE is
// copy-on-write: the call writes new storages, and the mutated arguments' names refer to these
// from then on.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/units.h"

namespace tidemark {

struct DtrLog {
  struct Storage {
    Bytes bytes{0};
    bool constant = false;
  };
  struct Step {
    enum class Kind : uint8_t {
      kConstant,  // outputs[0] exists from now on
      kCall,
      kFree,  // inputs[0] has lost its last name
    };
    Kind kind = Kind::kCall;
    int64_t line = 0;  // from 1
    std::string name{};
    Nanos time{0};
    std::vector<uint32_t> inputs{};   // storages, each once
    std::vector<uint32_t> outputs{};  // new storages; a view adds none
  };
  std::vector<Storage> storages;
  std::vector<Step> steps;
  std::vector<uint32_t> live;  // storages that still have names at the end, each once
  int64_t lines = 0;
  int64_t calls = 0;
  Nanos time{0};  // total of all calls
};

// Upper limits on the size of a storage and the duration of a log.
inline constexpr Bytes kLargestDtrStorage{int64_t{1} << 44};
inline constexpr Nanos kLongestDtrLog{int64_t{1'000'000} * 1'000'000'000};

// Throws DataError with `name`, the line and its error.
DtrLog parse_dtr_log(const std::string& name, std::string_view text);
// Reads a file, optionally gzipped. Throws DataError.
DtrLog read_dtr_log(const std::string& path);

}  // namespace tidemark
