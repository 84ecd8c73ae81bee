// Where make_device("cuda:N") leads: to a GPU in builds with CUDA (register_cuda.cc), to an
// error that says so in others (register_none.cc). The build takes one of the two files.
#pragma once

#include <memory>
#include <string>

#include "runtime/device/device.h"

namespace tidemark {

// `name`: "cuda" is GPU 0, "cuda:1" GPU 1. Probes the links of the GPU, which takes a fraction
// of a second. Throws UsageError where the name is none of these, there is no such GPU, or this
// build has no CUDA; DeviceError if the GPU cannot be used.
std::unique_ptr<Device> make_cuda_device(const std::string& name);

// Whether this build can have a CUDA device at all.
bool built_with_cuda();

}  // namespace tidemark
