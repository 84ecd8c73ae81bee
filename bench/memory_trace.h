// A sequence of allocations and frees: recorded from a run, or made up in the shape of one.
//
// The text format has one event per line:
//   a ID SIZE [w]   allocate SIZE bytes as block ID; w: a workspace
//   f ID            free it
//   # ...           a comment
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/units.h"

namespace tidemark {

struct TraceEvent {
  enum Kind : uint8_t { kAllocate, kFree };
  Kind kind = kAllocate;
  int64_t id = 0;
  Bytes size{0};  // of an allocation
  bool workspace = false;
};

struct MemoryTrace {
  std::vector<TraceEvent> events;
  Bytes max_live() const;  // sizes rounded up as an arena does
  Bytes total() const;     // of all that is ever allocated
};

// Throws DataError with the byte at fault: unknown line, an id allocated twice or freed
// unallocated.
MemoryTrace read_trace(const std::string& path);

struct ResNetTraceOptions {
  int batch = 8;
  int image = 224;
  int steps = 3;
  // Parameters are updated as their gradients appear, which then live shortly.
  bool update_in_backward = false;
};

// ResNet-50's tensors by size and lifetime: activations pile up in the forward pass and go in
// reverse order in the backward pass, gradients of weights stay until the update, convolutions
// have workspaces.
MemoryTrace resnet_like_trace(const ResNetTraceOptions& options);

}  // namespace tidemark
