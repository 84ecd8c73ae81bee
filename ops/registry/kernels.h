// Kernels that are not part of an operator's description: those of backends that a build may
// lack.
//
// OpDef::prepare names the kernels that are always there. CUDA's are added to them by
// register_cuda_kernels() (ops/register.h), so that no description depends on how it was built,
// and no linker has to be talked into keeping an initialiser.
//
// Threads: any.
#pragma once

#include "ops/registry/op.h"

namespace tidemark {

// From now on `op` has this kernel on `backend`; one that is there already is replaced. Calls
// whose kernel has been prepared keep it.
void set_kernel(const OpDef& op, Backend backend, PrepareKernel prepare);

// Null if there is none.
PrepareKernel find_kernel(const OpDef& op, Backend backend);

}  // namespace tidemark
