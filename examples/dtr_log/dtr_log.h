// Programs as DTR's simulator records them (Kirisame et al., "Dynamic Tensor
// Rematerialization", ICLR 2021): a line of JSON for each instruction, numbers as texts.
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
// Times are in nanoseconds, memory in bytes. ANNOTATE and PIN are passed over, and so is the
// RELEASE of a name that stands for nothing, as DTR's own reader does.
//
// What is made of it here has no names any more: storages, the calls that read and write them,
// and when the last name of each is gone. A view is its argument's storage, so bringing that
// back is enough (DTR runs the view again as well; that takes next to nothing). MUTATE is
// copy-on-write: the call writes new storages, for which the mutated arguments' names stand
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
      kConstant,  // outputs[0] is there from now on
      kCall,
      kFree,  // inputs[0] has no name any more
    };
    Kind kind = Kind::kCall;
    int64_t line = 0;  // from 1
    std::string name{};
    Nanos time{0};
    std::vector<uint32_t> inputs{};   // storages, each once
    std::vector<uint32_t> outputs{};  // new ones; views are none
  };
  std::vector<Storage> storages;
  std::vector<Step> steps;
  std::vector<uint32_t> live;  // storages that have names at the end, each once
  int64_t lines = 0;
  int64_t calls = 0;
  Nanos time{0};  // of all calls
};

// No storage may be larger, and no log may take longer.
inline constexpr Bytes kLargestDtrStorage{int64_t{1} << 44};
inline constexpr Nanos kLongestDtrLog{int64_t{1'000'000} * 1'000'000'000};

// Throws DataError that names `name`, the line and what is wrong with it.
DtrLog parse_dtr_log(const std::string& name, std::string_view text);
// A file, which may be packed by gzip. Throws DataError.
DtrLog read_dtr_log(const std::string& path);

}  // namespace tidemark
