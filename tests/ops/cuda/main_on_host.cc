// Runs a test of operators on the CPU device with CUDA's kernels instead of the CPU's. With
// --parameters it prints the types of the kernels' parameters, and how large the host's
// compiler makes them, for tests/ops/ptx/check_parameters.py.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <set>
#include <string_view>

#include <cuda_runtime.h>

#include "ops/register.h"
#include "ops/register_cuda.h"
#include "ops/registry/kernels.h"

namespace tidemark {
namespace {

// All but those of cuDNN.
void register_own_kernels() {
#define TIDEMARK_CUDA_KERNELS(stem) register_##stem##_cuda();
#include "ops/operators.inc"
}

}  // namespace
}  // namespace tidemark

int main(int argc, char** argv) {
  using namespace tidemark;
  if (argc > 1 && std::string_view(argv[1]) == "--parameters") {
    const auto& all = cuda_on_host_parameters();
    for (const auto& [type, bytes] : std::set(all.begin(), all.end())) {
      std::cout << type << " " << bytes << "\n";
    }
    return 0;
  }
  ::testing::InitGoogleTest(&argc, argv);
  setenv("TIDEMARK_TEST_OWN_PRODUCTS", "1", 1);  // gemm_on_host.cc
  register_own_kernels();
  for (const OpDef* op : all_operators()) {
    if (const PrepareKernel kernel = find_kernel(*op, Backend::kCuda)) {
      set_kernel(*op, Backend::kCpu, kernel);
    }
  }
  return RUN_ALL_TESTS();
}
