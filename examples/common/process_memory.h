// What the operating system says that this process takes.
#pragma once

#include <optional>

#include "runtime/core/units.h"

namespace tidemark {

// Most resident memory at once so far (VmHWM). None where the system does not say.
std::optional<Bytes> peak_resident_memory();

}  // namespace tidemark
