// Kernels for backends that a build may lack; they are registered apart from the operator's
// description.
//
// OpDef::prepare names the kernels that every build has; register_cuda_kernels()
// (ops/register.h) adds those for CUDA. An operator's description therefore does not depend on
// the build, and no static initialiser must be kept alive through the linker.
//
// Threads: any.
#pragma once

#include "ops/registry/op.h"

namespace tidemark {

// Sets `op`'s kernel on `backend`, and the list of its other algorithms, replacing any earlier
// one. Calls whose kernel has already been prepared keep that kernel.
void set_kernel(const OpDef& op, Backend backend, PrepareKernel prepare,
                ListAlgorithms algorithms = nullptr);

// Null if `op` has no kernel on `backend`.
PrepareKernel find_kernel(const OpDef& op, Backend backend);
// Null if `op` has only one algorithm there. Where it has no kernel: as for Backend::kModel.
ListAlgorithms find_algorithms(const OpDef& op, Backend backend);

}  // namespace tidemark
