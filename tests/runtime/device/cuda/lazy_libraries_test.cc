// The libraries are loaded at their first call, not before. No GPU is needed.
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cudnn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <iterator>
#include <string>

namespace tidemark {
namespace {

std::string mapped() {
  std::ifstream maps("/proc/self/maps");
  return {std::istreambuf_iterator<char>(maps), {}};
}

TEST(LazyLibraries, AreLoadedByTheFirstCall) {
  EXPECT_THAT(mapped(), ::testing::Not(::testing::HasSubstr("libcublas")));
  EXPECT_STREQ(cublasGetStatusName(CUBLAS_STATUS_SUCCESS), "CUBLAS_STATUS_SUCCESS");
  EXPECT_THAT(cublasGetStatusString(CUBLAS_STATUS_NOT_INITIALIZED), ::testing::Ne(nullptr));
  EXPECT_THAT(mapped(), ::testing::HasSubstr("libcublas"));
  EXPECT_THAT(mapped(), ::testing::Not(::testing::HasSubstr("libcudnn")));
  EXPECT_STREQ(cudnnGetErrorString(CUDNN_STATUS_SUCCESS), "CUDNN_STATUS_SUCCESS");
  EXPECT_THAT(mapped(), ::testing::HasSubstr("libcudnn"));
}

TEST(LazyLibraries, WhatIsSetIsThere) {
  cublasLtMatmulDescOpaque_t desc;
  ASSERT_EQ(cublasLtMatmulDescInit(&desc, CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F),
            CUBLAS_STATUS_SUCCESS);
  const auto transposed = CUBLAS_OP_T;
  EXPECT_EQ(cublasLtMatmulDescSetAttribute(&desc, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
                                           sizeof(transposed)),
            CUBLAS_STATUS_SUCCESS);
  cublasLtMatrixLayoutOpaque_t layout;
  ASSERT_EQ(cublasLtMatrixLayoutInit(&layout, CUDA_R_32F, 8, 4, 8), CUBLAS_STATUS_SUCCESS);
  const int32_t batch = 3;
  EXPECT_EQ(cublasLtMatrixLayoutSetAttribute(&layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                             &batch, sizeof(batch)),
            CUBLAS_STATUS_SUCCESS);
  cublasLtMatmulPreferenceOpaque_t preference;
  ASSERT_EQ(cublasLtMatmulPreferenceInit(&preference), CUBLAS_STATUS_SUCCESS);
  const size_t workspace = 1 << 20;
  EXPECT_EQ(
      cublasLtMatmulPreferenceSetAttribute(
          &preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof(workspace)),
      CUBLAS_STATUS_SUCCESS);
}

TEST(LazyLibraries, AHandleNeedsAGpuAndSaysSo) {
  cublasHandle_t handle = nullptr;
  cudnnHandle_t dnn = nullptr;
  if (cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS) GTEST_SKIP() << "there is a GPU";
  EXPECT_NE(cudnnCreate(&dnn), CUDNN_STATUS_SUCCESS);
  std::array<char, 256> message{};
  cudnnGetLastErrorString(message.data(), message.size());
}

}  // namespace
}  // namespace tidemark
