#include <gtest/gtest.h>

#include "ops/register.h"
#include "ops/registry/kernels.h"

namespace tidemark {
namespace {

TEST(RegisterCudaTest, EveryOperatorHasAKernel) {
  register_cuda_kernels();
  register_cuda_kernels();  // the second time does nothing
  for (const OpDef* op : all_operators()) {
    EXPECT_NE(find_kernel(*op, Backend::kCuda), nullptr) << op->name;
    EXPECT_EQ(find_kernel(*op, Backend::kCpu), op->prepare[0]) << op->name;
  }
}

}  // namespace
}  // namespace tidemark
