// What makes a step leave its plan.
#pragma once

#include <cstdint>

namespace tidemark::testing {

// An unscheduled event before a call of one step.
enum class Exit : uint8_t {
  kNone,
  kExtraCall,
  kExtraUpload,
  kExtraRead,
  kHandleKept,  // over the end of this step
  kEndsEarly,
  kThrows,
};
inline constexpr const char* kExitNames[] = {
    "none", "extra call", "extra upload", "extra read", "handle kept", "ends early", "throws"};

}  // namespace tidemark::testing
