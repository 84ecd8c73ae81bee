// How many bytes of global memory kernels ask for.
#include <algorithm>
#include <string>
#include <vector>

#include "ops/elementwise/compare.h"
#include "ops/embedding/embedding.h"
#include "ops/registry/dispatch.h"
#include "tests/support/ptx/library.h"
#include "tests/support/values.h"

namespace tidemark::testing {
namespace {

using BytesTest = SessionTest;

// Ids and their order are read once for each block, not for each column.
TEST_F(BytesTest, TheEmbeddingsGradientReadsLittleButRows) {
  const NoGrad no_grad;
  constexpr int64_t kCount = 256, kRows = 50;
  std::vector<int64_t> ids(kCount);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(i * i) % kRows;
  const Tensor id_tensor = from(ids, {kCount});
  for (const int64_t width : {254, 256}) {
    for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
      SCOPED_TRACE(std::to_string(width) + " columns, " + std::string(to_string(dtype)));
      const Tensor gy = cast(random_tensor({kCount, width}, 1), dtype);
      session_.device().synchronize_all();
      ptx::Library::shipped().take_counts();
      dispatch1(kEmbeddingGrad, {gy, id_tensor}, EmbeddingGradAttrs{kRows, -1});
      session_.device().synchronize_all();
      const auto counts = ptx::Library::shipped().take_counts();
      const auto sum = std::find_if(counts.begin(), counts.end(), [](const auto& kernel) {
        return kernel.first.find("sum_kernel") != std::string::npos;
      });
      ASSERT_NE(sum, counts.end());
      EXPECT_GE(sum->second.read, gy.meta().bytes().count());
      EXPECT_LT(sum->second.read, gy.meta().bytes().count() * 5 / 4);
    }
  }
}

}  // namespace
}  // namespace tidemark::testing
