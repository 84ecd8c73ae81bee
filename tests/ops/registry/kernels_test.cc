#include "ops/registry/kernels.h"

#include <gtest/gtest.h>

namespace tidemark {
namespace {

PreparedKernel first(const OpQuery&) { return {Bytes(1), {}}; }
PreparedKernel second(const OpQuery&) { return {Bytes(2), {}}; }

const OpDef kOne{.name = "one", .infer = nullptr, .cost = nullptr, .prepare = {first}};
const OpDef kOther{.name = "other", .infer = nullptr, .cost = nullptr, .prepare = {first}};

TEST(KernelsTest, AddedKernelsAreFoundBesideTheDescriptionsOwn) {
  EXPECT_EQ(find_kernel(kOne, Backend::kCpu), first);
  EXPECT_EQ(find_kernel(kOne, Backend::kCuda), nullptr);
  set_kernel(kOne, Backend::kCuda, second);
  EXPECT_EQ(find_kernel(kOne, Backend::kCuda), second);
  EXPECT_EQ(find_kernel(kOne, Backend::kCpu), first);
  EXPECT_EQ(find_kernel(kOther, Backend::kCuda), nullptr);
  EXPECT_EQ(find_kernel(kOne, Backend::kModel), nullptr);
}

}  // namespace
}  // namespace tidemark
