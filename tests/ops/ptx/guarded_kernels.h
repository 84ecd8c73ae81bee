// CUDA's kernels as the CPU device's, each allowed to use the memory of its call and no other.
#pragma once

namespace tidemark {

// Registers them for all operators that have one, but for cuDNN's. From then on, a kernel may
// read its inputs, write its outputs and those inputs that the operator writes in place, and
// use its workspace. Everything else is a violation.
void register_guarded_kernels();

}  // namespace tidemark
