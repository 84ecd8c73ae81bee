// The disk tier on a given file; tier.h makes the usual one.
#pragma once

#include <memory>

#include "runtime/memory/disk_file.h"
#include "runtime/memory/tier.h"

namespace tidemark {

// The file grows in steps of this size, or by the requested size near the limit.
inline constexpr Bytes kDiskStep{64 << 20};

// `file` may be null on a device without data, and when the limit is 0. The tier keeps it alive
// until its last work is done.
std::unique_ptr<Tier> make_disk_tier_on(Device& device, Bytes limit,
                                        std::shared_ptr<DiskFile> file);

}  // namespace tidemark
